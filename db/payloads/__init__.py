"""Outputs as bytes: encoding, locations and deletion."""
