package v1beta1

// Stands in a file of conversions, which upstream has left where it was.
var nullLiteral = []byte(`null`)
