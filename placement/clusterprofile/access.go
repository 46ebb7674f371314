package clusterprofile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// AccessProvider describes to the consumers of ClusterProfiles how to connect to a cluster (KEP-5339). It provides the
// address of the API server, and the input for the credential plugin that consumers run for the name of the provider. A
// profile contains no credential.
type AccessProvider struct {
	// Name is the name by which consumers find the plugin.
	Name string
	// Cluster returns the access information of a member, or nil if there is none. The result must depend on the member
	// only. Cluster must return immediately.
	Cluster func(*membershipv1alpha1.MemberCluster) *clientcmdv1.Cluster
}

// execExtension is the name of the cluster extension that client-go passes to its credential plugin.
const execExtension = "client.authentication.k8s.io/exec"

// KubeconfigSecretReader returns the provider for kubeconfig-secretreader, a plugin of SIG Multicluster. The plugin
// reads the credential from the Secret in the member's spec.kubeConfigSecretRef, so consumers need permission to read
// that Secret. A member has this provider as soon as the hub has its endpoint. The plugin reads kubeconfigs only.
// Members whose Secret has keys of another form do not have this provider. namespace is the namespace of Secrets whose
// reference contains none, such as membership.ConnectionNamespace.
func KubeconfigSecretReader(namespace string) AccessProvider {
	return AccessProvider{Name: "kubeconfig-secretreader",
		Cluster: func(member *membershipv1alpha1.MemberCluster) *clientcmdv1.Cluster {
			ref, endpoint := member.Spec.KubeConfigSecretRef, member.Status.Endpoint
			if ref == nil || endpoint == nil {
				return nil
			}
			where, err := json.Marshal(map[string]string{
				"name": ref.Name, "namespace": cmp.Or(ref.Namespace, namespace), "key": cmp.Or(ref.Key, "value"),
			})
			if err != nil {
				return nil // impossible for a map of strings
			}
			return &clientcmdv1.Cluster{
				Server: endpoint.Server, CertificateAuthorityData: endpoint.CABundle, TLSServerName: endpoint.TLSServerName,
				ProxyURL:   endpoint.ProxyURL,
				Extensions: []clientcmdv1.NamedExtension{{Name: execExtension, Extension: runtime.RawExtension{Raw: where}}},
			}
		}}
}

// accessTo returns the access information of a member from all providers, in the form of a profile.
func (o Options) accessTo(member *membershipv1alpha1.MemberCluster) []any {
	var all []any
	for _, provider := range o.AccessProviders {
		cluster := provider.Cluster(member)
		if cluster == nil {
			continue
		}
		said, err := asJSON(cluster)
		if err != nil { // an extension is not JSON: the profile omits this provider
			continue
		}
		all = append(all, map[string]any{"name": provider.Name, "cluster": said})
	}
	return all
}

// asJSON returns an object in the form in which the API server returns it.
func asJSON(object any) (decoded map[string]any, err error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", object, err)
	}
	return decoded, json.Unmarshal(data, &decoded)
}

// mergeAccess merges the desired entries of our providers into the existing entries. Entries with a name in ours are
// replaced or removed. Entries of other providers stay.
func mergeAccess(have, want []any, ours []AccessProvider) []any {
	name := func(item any) any {
		provider, _ := item.(map[string]any)
		return provider["name"]
	}
	var merged []any
	for _, item := range have {
		its := name(item)
		i := slices.IndexFunc(want, func(other any) bool { return name(other) == its })
		switch is := slices.ContainsFunc(ours, func(p AccessProvider) bool { return p.Name == its }); {
		case i >= 0:
			merged = append(merged, want[i])
		case !is:
			merged = append(merged, item)
		}
	}
	for _, item := range want {
		if !slices.ContainsFunc(merged, func(other any) bool { return reflect.DeepEqual(name(other), name(item)) }) {
			merged = append(merged, item)
		}
	}
	return merged
}
