"""VLMEvalKit's files of answers and scores; its classes import `standin`."""
