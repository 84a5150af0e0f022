"""VLMEvalKit's files of answers and scores; `standin` is what its classes import."""
