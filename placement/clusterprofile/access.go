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

// AccessProvider tells the consumers of ClusterProfiles how to get to a cluster, by KEP-5339: where its API server is,
// and what is told to the credential plugin that consumers run for the provider's name. A profile has no credential in
// it.
type AccessProvider struct {
	// Name, by which consumers know the plugin.
	Name string
	// Cluster returns the access information of a member. Nil: there is none. The result must depend on the member only,
	// and Cluster must return at once.
	Cluster func(*membershipv1alpha1.MemberCluster) *clientcmdv1.Cluster
}

// execExtension is the extension of a cluster that client-go hands to its credential plugin.
const execExtension = "client.authentication.k8s.io/exec"

// KubeconfigSecretReader is the provider of SIG Multicluster's plugin kubeconfig-secretreader, which takes the
// credential out of the Secret of the member's spec.kubeConfigSecretRef; consumers need to be allowed to read that. A
// member has it as soon as the hub knows its endpoint. The plugin reads kubeconfigs and nothing else, so a member whose
// Secret has keys of another form is not for it. Namespace is that of Secrets whose reference names none, such as
// membership.ConnectionNamespace.
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
				return nil // not of strings
			}
			return &clientcmdv1.Cluster{
				Server: endpoint.Server, CertificateAuthorityData: endpoint.CABundle, TLSServerName: endpoint.TLSServerName,
				ProxyURL:   endpoint.ProxyURL,
				Extensions: []clientcmdv1.NamedExtension{{Name: execExtension, Extension: runtime.RawExtension{Raw: where}}},
			}
		}}
}

// accessTo is what the providers say of a member, as it is in a profile.
func (o Options) accessTo(member *membershipv1alpha1.MemberCluster) []any {
	var all []any
	for _, provider := range o.AccessProviders {
		cluster := provider.Cluster(member)
		if cluster == nil {
			continue
		}
		said, err := asJSON(cluster)
		if err != nil { // an extension that is no JSON: the profile is as good without
			continue
		}
		all = append(all, map[string]any{"name": provider.Name, "cluster": said})
	}
	return all
}

// asJSON is an object in the form in which the API server returns it.
func asJSON(object any) (decoded map[string]any, err error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", object, err)
	}
	return decoded, json.Unmarshal(data, &decoded)
}

// mergeAccess puts what our providers say among what others do: ours are those of these names.
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
