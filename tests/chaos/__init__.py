"""`make soak-chaos`: a cluster under churn while its parts are killed, stopped and cut off."""
