"""The ledger: which GPU is held by which task executor.

``fileformat`` and ``upstream`` are pure; ``store``, ``files`` and ``lock`` touch the host.
"""
