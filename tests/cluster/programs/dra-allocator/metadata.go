package main

import (
	"encoding/json"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"
	metadata "k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"
	"k8s.io/dynamic-resource-allocation/devicemetadata"
)

// decoded is a file of device metadata as upstream's library reads it.
type decoded struct {
	Version  string                   `json:"version"`
	Invalid  string                   `json:"invalid,omitempty"`
	Metadata *metadata.DeviceMetadata `json:"metadata"`
}

func readMetadata(file io.Reader, answers *json.Encoder) error {
	var found metadata.DeviceMetadata
	var version schema.GroupVersionKind
	var invalid error
	err := devicemetadata.DecodeMetadataFromStream(
		json.NewDecoder(file), &found,
		devicemetadata.DecodeMetadataWithValidationResult(&invalid),
		devicemetadata.DecodeMetadataStoreGVKResult(&version))
	if err != nil {
		return err
	}
	answer := decoded{Version: version.Version, Metadata: &found}
	if invalid != nil {
		answer.Invalid = invalid.Error()
	}
	return answers.Encode(answer)
}
