"""Relevance feedback, measured: does searching again with what was found relevant find more?"""
