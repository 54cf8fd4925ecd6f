"""What is published: manifests without Helm, the chart, the image, and what describes them."""
