package jointoken

import (
	"encoding/base64"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/membership/registration"
)

// chartValues are the values of the Helm chart muster-agent with which an agent registers. They contain everything that
// a Bootstrap contains, and the cluster ID if the JoinToken is for one cluster.
type chartValues struct {
	APIServerURL          string `json:"apiServerURL"`
	APIServerCA           string `json:"apiServerCA"`
	RegistrationNamespace string `json:"registrationNamespace"`
	HubID                 string `json:"hubID,omitempty"`
	TokenName             string `json:"tokenName"`
	Token                 string `json:"token"`
	TokenKey              string `json:"tokenKey"`
	TokenExpirationTime   string `json:"tokenExpirationTime,omitempty"`
	MoveFrom              string `json:"moveFrom,omitempty"`
	ClusterID             string `json:"clusterID,omitempty"`
}

// valuesFor returns the values for a Bootstrap. The same input always results in the same bytes. They are a secret.
func valuesFor(bootstrap *registration.Bootstrap, clusterID string) ([]byte, error) {
	values := chartValues{
		APIServerURL: bootstrap.Server, APIServerCA: string(bootstrap.CA), RegistrationNamespace: bootstrap.Namespace,
		HubID: bootstrap.HubID, TokenName: bootstrap.TokenName, Token: bootstrap.Token,
		TokenKey: base64.StdEncoding.EncodeToString(bootstrap.Key), MoveFrom: bootstrap.MoveFrom, ClusterID: clusterID,
	}
	if !bootstrap.ExpirationTime.IsZero() {
		values.TokenExpirationTime = bootstrap.ExpirationTime.UTC().Format(time.RFC3339)
	}
	data, err := yaml.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("marshal the chart values of JoinToken %s: %w", bootstrap.TokenName, err)
	}
	return data, nil
}
