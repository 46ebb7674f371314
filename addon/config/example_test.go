package config_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// The member's own configuration has precedence over the defaults, kind by kind, and the add-on does not support
// Secrets.
func ExampleEffective() {
	addon := &v1alpha1.AddonSpec{Configs: []v1alpha1.ConfigKind{
		{Group: v1alpha1.GroupName, Resource: "addonconfigs",
			Defaults: []v1alpha1.ObjectName{{Namespace: "fleet", Name: "base"}}},
		{Resource: "configmaps", Defaults: []v1alpha1.ObjectName{{Namespace: "fleet", Name: "rules"}}},
	}}
	member := []v1alpha1.ConfigReference{
		{Resource: "configmaps", ObjectName: v1alpha1.ObjectName{Namespace: "member-east", Name: "rules"}},
		{Resource: "secrets", ObjectName: v1alpha1.ObjectName{Namespace: "member-east", Name: "token"}},
	}
	references, problems := config.Effective(addon, nil, member)
	for _, r := range references {
		fmt.Println(r.From, r)
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	// Output:
	// Default addonconfigs.addon.muster.dev fleet/base
	// Member configmaps member-east/rules
	// The add-on does not support secrets member-east/token, listed in the MemberAddon: remove the reference, or declare the kind in spec.configs of the Addon.
}

// Two AddonConfigs, of which the later one has precedence, and the resulting Pod.
func ExampleSettings_Apply() {
	settings := config.Values([]v1alpha1.AddonConfigSpec{
		{
			NodePlacement: &v1alpha1.NodePlacement{NodeSelector: map[string]string{"pool": "infra"}},
			Registries:    []v1alpha1.Registry{{Source: "quay.io", Mirror: "mirror.example.com/quay"}},
		},
		{
			Registries: []v1alpha1.Registry{{Source: "quay.io/example", Mirror: "registry.east.example.com/example"}},
			Proxy:      &v1alpha1.Proxy{HTTPS: "http://proxy.east:3128"},
		},
	})
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "agent"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "agent", "image": "quay.io/example/agent:v1"}}},
	}}
	objects, err := settings.Apply([]*unstructured.Unstructured{pod})
	if err != nil {
		panic(err)
	}
	text, err := yaml.Marshal(objects[0].Object["spec"])
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s", text)
	// Output:
	// containers:
	// - env:
	//   - name: HTTPS_PROXY
	//     value: http://proxy.east:3128
	//   - name: https_proxy
	//     value: http://proxy.east:3128
	//   image: registry.east.example.com/example/agent:v1
	//   name: agent
	// nodeSelector:
	//   pool: infra
}
