"""VLMEvalKit's rules, step by step, slips included: what its published numbers were made by (vlmevalkit@1).

They follow VLMEvalKit at commit e8e78f0 (18 August 2026), with its variables VERBOSE and SPLIT_THINK unset. One thing
is left out: where it draws an option at random, the answer is unparsed here (see `testbed.answers.scorings.drawn`).
"""
