"""What the commands do, one module each; they change the host, and neither print nor exit."""
