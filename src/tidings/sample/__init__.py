"""The sample world: invented data and stand-ins for every outside service."""
