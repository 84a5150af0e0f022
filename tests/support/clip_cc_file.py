"""CLIP-CC-Bench's configuration file."""

from __future__ import annotations

# The file as CLIP-CC-Bench's README has it.
CONFIG = """
decoder:
  name: "nv-embed"
  path: "decoder_models/nv-embed"  # Relative to parent dir
  type: "nvembed"
  batch_size: 8                    # Adjust based on GPU memory
  max_length: 32768                # Max context length
  device_map: "auto"
  trust_remote_code: true
  additional_params:
    instruction_for_retrieval: "Given a ground truth video summary, assess the quality."
  fine_grained:
    enabled: true                  # Enable sentence-level matching
    chunking_method: "nltk"        # Use NLTK sentence tokenizer

processing:
  device: "cuda:0"                 # GPU device
  clear_cache_interval: 25         # Clear GPU cache every N videos
  progress_interval: 10            # Log progress every N videos

data_paths:
  ground_truth_file: "data/ground_truth/clip_cc_dataset.json"
  predictions_dir: "data/models"
  results_base_dir: "results"

models_to_evaluate:
  - "internvl"
  - "llava_next_video"
"""
