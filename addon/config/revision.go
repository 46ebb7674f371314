package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// Hash returns a hash of the content of a configuration, 64 hexadecimal digits. The content is the spec or, for a kind
// without a spec such as ConfigMap, everything except apiVersion, kind, metadata and status. The order of fields has no
// effect, and neither has the API version if it has the same fields. The object is not modified.
func Hash(object *unstructured.Unstructured) string {
	content := object.Object["spec"]
	if content == nil {
		rest := make(map[string]any, len(object.Object))
		for name, value := range object.Object {
			switch name {
			case "apiVersion", "kind", "metadata", "spec", "status":
			default:
				rest[name] = value
			}
		}
		content = rest
	}
	return digest(content)
}

// digest returns the hash of a value as JSON, in which fields are sorted by name.
func digest(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte(err.Error()) // the object does not come from an API server
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Resolve returns the configurations in the form of the status of a MemberAddon, in the same order. HashOf returns the
// [Hash] of the object, or an empty string if it does not exist; the caller must handle read errors before. Last is the
// previous status: a configuration in it keeps its applied hash. When the member is assigned the revision, set the
// applied hash to the desired one.
//
// Hashing a large configuration is the most expensive step: if many members share one, hash it once.
//
// The problems are the missing configurations. While there are any, do not change the member.
func Resolve(references []Reference, last []v1alpha1.ConfigStatus,
	hashOf func(v1alpha1.ConfigReference) string) ([]v1alpha1.ConfigStatus, []Problem) {
	configs := make([]v1alpha1.ConfigStatus, len(references))
	var problems []Problem
	for i, reference := range references {
		configs[i] = v1alpha1.ConfigStatus{ConfigReference: reference.ConfigReference, From: reference.From}
		if configs[i].DesiredHash = hashOf(reference.ConfigReference); configs[i].DesiredHash == "" {
			problems = append(problems, Problem{reference, v1alpha1.ReasonConfigNotFound})
		}
		for j := range last {
			if last[j].ConfigReference == reference.ConfigReference {
				configs[i].AppliedHash = last[j].AppliedHash
			}
		}
	}
	return configs, problems
}

// Content is the desired state of an add-on on a member.
type Content struct {
	// Addon is the name of the add-on.
	Addon string
	// Version is the version of the Go agent. It must change when the same configurations lead to other manifests.
	// Empty for a template, which is one of the configurations.
	Version string
	// InstallNamespace is the namespace of the agent on the member.
	InstallNamespace string
	// HostingMember is the name of the desired hosting member. Empty: none.
	HostingMember string
	// Configs are the configurations that apply, as [Resolve] returns them.
	Configs []v1alpha1.ConfigStatus
}

// Revision identifies the content: the name of the add-on and the first 12 digits of a hash, for example
// metrics-5f6d8c9b7a12. It is a valid label value if the name is a valid add-on name.
//
// The hash covers the names and desired hashes of configurations and the order within one kind, but not the order of
// kinds, the source of a configuration, or applied hashes. A field that a later release adds does not change revisions
// until it is set.
func Revision(of Content) string {
	type config struct {
		v1alpha1.ConfigReference
		Hash string `json:"hash"`
	}
	content := struct {
		Addon            string   `json:"addon"`
		Version          string   `json:"version"`
		InstallNamespace string   `json:"installNamespace"`
		HostingMember    string   `json:"hostingMember,omitempty"`
		Configs          []config `json:"configs"`
	}{of.Addon, of.Version, of.InstallNamespace, of.HostingMember, make([]config, len(of.Configs))}
	for i := range of.Configs {
		content.Configs[i] = config{of.Configs[i].ConfigReference, of.Configs[i].DesiredHash}
	}
	slices.SortStableFunc(content.Configs, func(a, b config) int {
		if byGroup := strings.Compare(a.Group, b.Group); byGroup != 0 {
			return byGroup
		}
		return strings.Compare(a.Resource, b.Resource)
	})
	return of.Addon + "-" + digest(content)[:12]
}
