"""The device-plugin API as it goes over the wire: knows neither cards nor grants."""
