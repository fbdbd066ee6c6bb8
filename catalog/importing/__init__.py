"""Tables of the catalog as files: read strictly, compared with what is there, applied all or not at all."""
