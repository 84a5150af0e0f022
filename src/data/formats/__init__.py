"""Formats of files: folders and lists of images, annotations, captions, texts."""
