"""Feeds of providers: one module per format, bytes in, offers and rejections out (docs/feeds.md)."""
