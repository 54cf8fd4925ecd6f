// The reader of device metadata: what a program in a container finds in one file of it.
package main

import (
	"encoding/json"
	"os"

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

func readMetadata() error {
	var found metadata.DeviceMetadata
	var version schema.GroupVersionKind
	var invalid error
	err := devicemetadata.DecodeMetadataFromStream(
		json.NewDecoder(os.Stdin), &found,
		devicemetadata.DecodeMetadataWithValidationResult(&invalid),
		devicemetadata.DecodeMetadataStoreGVKResult(&version))
	if err != nil {
		return err
	}
	answer := decoded{Version: version.Version, Metadata: &found}
	if invalid != nil {
		answer.Invalid = invalid.Error()
	}
	return json.NewEncoder(os.Stdout).Encode(answer)
}
