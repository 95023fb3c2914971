"""A kernel machine for any table, with a metric that is learned from gradients in seconds."""
