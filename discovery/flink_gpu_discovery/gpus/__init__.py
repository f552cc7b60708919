"""The GPUs of the host: ``inventory`` is the entry, each other module one backend or a help for them."""
