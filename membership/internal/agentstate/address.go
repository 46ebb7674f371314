package agentstate

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/membership/registration"
)

// AddressKey is the key of a bootstrap Secret that contains the address of the hub, after the agent has removed the
// credential. A credential takes precedence.
const AddressKey = "hub.yaml"

// address is the part of a bootstrap credential that is not secret.
type address struct {
	Server string `json:"server"`
	CA     string `json:"ca"`
	HubID  string `json:"hubID,omitempty"`
}

// MarshalAddress returns the address of the hub in the format of [ParseAddress].
func MarshalAddress(b *registration.Bootstrap) ([]byte, error) {
	return yaml.Marshal(address{Server: b.Server, CA: string(b.CA), HubID: b.HubID})
}

// ParseAddress returns a bootstrap without a credential.
func ParseAddress(data []byte) (*registration.Bootstrap, error) {
	var is address
	if err := yaml.Unmarshal(data, &is); err != nil {
		return nil, fmt.Errorf("read the address of the hub: %w", err)
	}
	if is.Server == "" {
		return nil, errors.New("read the address of the hub: the field server is empty")
	}
	return &registration.Bootstrap{Server: is.Server, CA: []byte(is.CA), HubID: is.HubID}, nil
}
