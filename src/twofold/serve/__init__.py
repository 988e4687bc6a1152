"""Fitted models as a service over HTTP: `twofold serve model.twofold`."""
