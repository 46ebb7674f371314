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

// Hash tells what a configuration says from anything else that it might say, in 64 hexadecimal digits: its spec or, if it has none,
// as a ConfigMap does not, all but its apiVersion, kind, metadata and status. The order of fields makes no difference, nor does the version of the API that
// the object was read by, as long as that has the same fields. The object is not changed.
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

// digest is that of a value as JSON, which has the fields in the order of their names.
func digest(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte(err.Error()) // it did not come from an API server
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Resolve looks up configurations and returns them as a MemberAddon's status has them, in the same order. HashOf returns the [Hash] of the object, or
// nothing if there is none; what cannot be known for an error is not missing, and is for the caller to give up on before. Last is what the status had: a
// configuration that is in it keeps its applied hash. When the member is told, set that to the desired one.
//
// To hash a large configuration takes longer than all else: where many members share one, hash it once.
//
// The problems are the configurations that are missing. While there are any, leave the member what it has.
func Resolve(references []Reference, last []v1alpha1.ConfigStatus, hashOf func(v1alpha1.ConfigReference) string) ([]v1alpha1.ConfigStatus, []Problem) {
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

// Content is all that an add-on is to be on a member.
type Content struct {
	// Addon is its name.
	Addon string
	// Version of its agent in Go, which changes when the same configurations come to other manifests. Empty for a template, which is one of the
	// configurations.
	Version string
	// InstallNamespace is where it is on the member.
	InstallNamespace string
	// HostingMember is the member that is to run the agent, as it is named. Empty: none is.
	HostingMember string
	// Configs that count, as [Resolve] returns them.
	Configs []v1alpha1.ConfigStatus
}

// Revision names the content: the add-on's name and the first 12 digits of a hash, as in metrics-5f6d8c9b7a12. It is a label value if the
// name is that of an add-on.
//
// Of configurations their names and desired hashes count, and the order of those of one kind; not the order of kinds, nor who names them, nor what is
// applied. A field that a later release adds changes no name until it is set.
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
