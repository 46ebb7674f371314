// Package deploy contains the manifests of a hub and of agents: as files for kustomize, as objects for programs, and as
// an installer for hubs that install agents (package membership/install). The folder charts contains Helm charts with
// the same objects; they are not part of [Files].
//
//	kubectl apply -k https://github.com/muster-sdk/muster/deploy/hub/base
//	kubectl apply -k https://github.com/muster-sdk/muster/deploy/agent/overlays/singleton
//
// # Layouts of agents
//
// The folder agent/overlays has one overlay for each layout:
//
//   - membership: the agent makes its cluster a member, and nothing else.
//   - singleton: one process for membership and Works.
//   - hosted: the agent runs outside of its member, in a namespace of another cluster. Apply the overlay hosted/member
//     to the member, and hosted/hosting to the cluster where the agent runs, into one namespace for each member, with a
//     Secret muster-member-kubeconfig.
//
// Each layout requires a Secret muster-bootstrap in the namespace of the agent, which contains the content of the
// Secret of a JoinToken, and an image of a program such as examples/agent. A kustomization sets the image with
// "images".
//
// The manifests do not define what Works may contain. A ClusterRole with the label work.muster.dev/aggregate-to-agent:
// "true" adds permissions, and components/apply-anything allows everything.
//
// # Several hubs
//
// The manifests are for an agent with one hub without a name. An agent of hubs with names, such as examples/agent with
// the flag --hub, needs its Secrets and its Lease of these names. Add for each hub to your kustomization:
//
//	resources: [https://github.com/muster-sdk/muster/deploy/agent/overlays/singleton]
//	patches:
//	- target: {kind: Role, name: muster-agent-member}
//	  patch: |
//	    - {op: add, path: /rules/1/resourceNames/-, value: muster-agent-west}
//	    - {op: add, path: /rules/2/resourceNames/-, value: muster-bootstrap-west}
//	- target: {kind: Role, name: muster-agent-leader-election} # for the first hub only
//	  patch: |
//	    - {op: add, path: /rules/1/resourceNames/-, value: muster-agent-west}
//	- target: {kind: Deployment, name: muster-agent}
//	  patch: |
//	    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --hub=west}
//
// # Removal
//
// An agent removes what it created when its member leaves, and nothing else. A hub that installed these objects
// (joinMode Install) removes them. A user who applied them deletes them after the leave:
//
//	kubectl delete --ignore-not-found -k https://github.com/muster-sdk/muster/deploy/agent/overlays/singleton
//
// Do not delete them before the leave, and not while the cluster is in another fleet: they contain the
// CustomResourceDefinition of AppliedWork, which is deleted with all AppliedWorks. A hub, and package membership/admin
// with RemoveFromMember of work/crds, keep the definition while an AppliedWork exists or another client manages fields
// of it; kubectl does not.
//
// "go generate" creates the manifests from the roles that the packages declare.
package deploy

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/install"
)

// Files contains the folders agent and hub with all manifests.
//
//go:embed agent hub
var Files embed.FS

// Layout is how agents are deployed. One outside of its member is nothing that a hub installs.
type Layout string

// The layouts.
const (
	// Singleton is one process for membership and Works.
	Singleton Layout = "singleton"
	// Membership is an agent that makes its cluster a member, and nothing else.
	Membership Layout = "membership"
)

// WorksLabel is on ClusterRoles of a member that say what Works may contain; its value is "true".
const WorksLabel = "work.muster.dev/aggregate-to-agent"

// AgentOptions say which agent is to be deployed.
type AgentOptions struct {
	// Image of the program, which takes the flags of examples/agent. It must be set.
	Image string
	// Layout of the agent. Empty: [Singleton].
	Layout Layout
	// Works says what Works may contain. The user who installs the agent must have these permissions on the member.
	// Nil: what ClusterRoles with the [WorksLabel] on the member say.
	Works []rbacv1.PolicyRule
}

// Agent returns the installer of an agent, for members with joinMode Install: its manifests with the image, and the
// flag --cluster-id with the cluster ID of the member. To change more, wrap Objects of the result and extend Version.
// The error is a [*membership.InvalidError] that names the option.
func Agent(o AgentOptions) (*install.Manifests, error) {
	if o.Layout == "" {
		o.Layout = Singleton
	}
	if err := (Customization{Image: o.Image}).Validate(); err != nil {
		return nil, err
	}
	switch {
	case o.Layout != Singleton && o.Layout != Membership:
		return nil, &membership.InvalidError{Field: "Layout", Problem: "must be singleton or membership"}
	case o.Layout == Membership && len(o.Works) > 0:
		return nil, &membership.InvalidError{Field: "Works", Problem: "must not be set where the layout has no Works"}
	}
	objects, err := Objects(string(o.Layout))
	if err != nil {
		return nil, err
	}
	if len(o.Works) > 0 {
		granted, err := grant(o.Works)
		if err != nil {
			return nil, err
		}
		objects = slices.Insert(objects, 0, granted) // it is removed after what it is aggregated to
	}
	version, err := hash(objects, o.Image)
	if err != nil {
		return nil, err
	}
	return &install.Manifests{
		Version: version,
		Objects: func(target install.Target) ([]client.Object, error) {
			out := make([]client.Object, 0, len(objects))
			for _, object := range objects {
				object = object.DeepCopy()
				if object.GetKind() == "Deployment" {
					arguments := []string{"--cluster-id=" + target.Cluster.Spec.ClusterID}
					if err := setProgram(object, o.Image, arguments); err != nil {
						return nil, err
					}
				}
				out = append(out, object)
			}
			return out, nil
		},
	}, nil
}

// Objects returns the objects of an overlay, such as "singleton" or "hosted/member", in the order in which they can be
// applied, and those of the given folders of agent/components, such as "apply-anything". The image of the program is
// "muster-agent"; see [Customize]. An unknown overlay or component is an error.
func Objects(overlay string, components ...string) ([]*unstructured.Unstructured, error) {
	objects, err := read(path.Join("agent/overlays", overlay))
	if err != nil {
		return nil, fmt.Errorf("read the manifests of overlay %q: %w", overlay, err)
	}
	for _, component := range components {
		more, err := read(path.Join("agent/components", component))
		if err != nil {
			return nil, fmt.Errorf("read the manifests of component %q of the agent: %w", component, err)
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

// read returns the objects of a kustomization, all of whose resources are files and folders.
func read(folder string) ([]*unstructured.Unstructured, error) {
	data, err := fs.ReadFile(Files, path.Join(folder, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	if err := yaml.Unmarshal(data, &kustomization); err != nil {
		return nil, fmt.Errorf("read %s: %w", folder, err)
	}
	var out []*unstructured.Unstructured
	for _, resource := range kustomization.Resources {
		name := path.Join(folder, resource)
		if path.Ext(name) != ".yaml" {
			inner, err := read(name)
			if err != nil {
				return nil, err
			}
			out = append(out, inner...)
			continue
		}
		data, err := fs.ReadFile(Files, name)
		if err != nil {
			return nil, err
		}
		_, text, _ := strings.Cut(string(data), "---\n")
		for document := range strings.SplitSeq(text, "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
			out = append(out, object)
		}
	}
	return out, nil
}

// grant is the ClusterRole that says what Works may contain.
func grant(rules []rbacv1.PolicyRule) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "muster-agent-works-granted", Labels: map[string]string{WorksLabel: "true"}},
		Rules:      rules,
	})
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(data)
}

func hash(objects []*unstructured.Unstructured, image string) (string, error) {
	data, err := json.Marshal(objects)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(data, image...))
	return hex.EncodeToString(sum[:]), nil
}
