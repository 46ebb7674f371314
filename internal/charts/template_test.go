package charts

import (
	"encoding/base64"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership/registration"
)

func TestCharts_Lint(t *testing.T) {
	for _, name := range []string{hubChart, agentChart} {
		lint := action.NewLint()
		lint.Strict = true
		lint.Namespace = namespace
		result := lint.Run([]string{folder(name)}, nil)
		require.Empty(t, result.Errors, name)
		for _, message := range result.Messages {
			require.Less(t, message.Severity, support.WarningSev, "%s: %v", name, message)
		}
	}
}

// TestCharts_EqualKustomize checks that the charts install the objects of the kustomize layouts.
func TestCharts_EqualKustomize(t *testing.T) {
	hub := func(components ...string) func() ([]*unstructured.Unstructured, error) {
		return func() ([]*unstructured.Unstructured, error) { return deploy.Hub(components...) }
	}
	agent := func(overlay string) func() ([]*unstructured.Unstructured, error) {
		return func() ([]*unstructured.Unstructured, error) { return deploy.Objects(overlay) }
	}
	for _, test := range []struct {
		name, chart string
		values      values
		want        func() ([]*unstructured.Unstructured, error)
	}{
		{"default hub", hubChart, nil, hub()},
		{
			"hub with all components", hubChart,
			values{
				"selectAnything": true, "usersPlace": true, "serviceMonitor": values{"enabled": true},
				"push": values{"enabled": true}, "bootstrapTokens": values{"enabled": true},
				"clusterProfiles": values{"enabled": true},
			},
			hub("select-anything", "users-place", "monitoring", "push", "bootstrap-tokens", "cluster-profiles"),
		},
		{"default agent", agentChart, nil, agent("singleton")},
		{"agent without Works", agentChart, values{"works": false}, agent("membership")},
	} {
		t.Run(test.name, func(t *testing.T) {
			want, err := test.want()
			require.NoError(t, err)
			got, err := template(t, test.chart, test.values)
			require.NoError(t, err)
			wanted := normalized(t, want)
			// The namespace of the release is created by helm install --create-namespace.
			delete(wanted, "Namespace /"+namespace)
			found := normalized(t, got)
			if test.values["works"] == false { // Helm installs the folder crds in any case.
				delete(found, "CustomResourceDefinition /appliedworks.work.muster.dev")
				delete(found, "CustomResourceDefinition /memberpolicies.tenancy.muster.dev")
			}
			require.Equal(t, slices.Sorted(maps.Keys(wanted)), slices.Sorted(maps.Keys(found)))
			for key := range wanted {
				require.Equal(t, wanted[key], found[key], key)
			}
		})
	}
}

// normalized returns objects by kind, namespace and name, without the labels and annotations that are for Helm only.
func normalized(t *testing.T, objects []*unstructured.Unstructured) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, object := range objects {
		object = object.DeepCopy()
		for _, path := range [][]string{
			{"metadata", "labels", "helm.sh/chart"}, {"metadata", "annotations", "helm.sh/resource-policy"},
		} {
			unstructured.RemoveNestedField(object.Object, path...)
		}
		if len(object.GetAnnotations()) == 0 {
			unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
		}
		key := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		require.NotContains(t, out, key)
		out[key] = object.Object
	}
	return out
}

// TestCharts_RefuseInvalidValues checks that the error of an invalid value names its field.
func TestCharts_RefuseInvalidValues(t *testing.T) {
	const ca = "-----BEGIN CERTIFICATE-----\n"
	for _, test := range []struct {
		reason, chart string
		values        values
		field         string // Empty: the values are valid.
	}{
		{"an unknown field", hubChart, values{"replica": 2}, "'replica'"},
		{"a text instead of a number", hubChart, values{"replicas": "two"}, "'/replicas'"},
		{"two replicas without leader election", hubChart, values{
			"leaderElection": values{"enabled": false},
		}, "'/leaderElection/enabled'"},
		{"one replica without leader election", hubChart, values{
			"replicas": 1, "leaderElection": values{"enabled": false},
		}, ""},
		{"an API server URL without TLS", hubChart, values{"apiServerURL": "http://hub.example.com"}, "'/apiServerURL'"},
		{"a CA that is not PEM", hubChart, values{"apiServerCA": "ca.crt"}, "'/apiServerCA'"},
		{"port 0", hubChart, values{"metrics": values{"port": 0}}, "'/metrics/port'"},
		{"a ServiceMonitor without metrics", hubChart, values{
			"metrics": values{"enabled": false}, "serviceMonitor": values{"enabled": true},
		}, "'/metrics/enabled'"},
		{"a repository with a tag", hubChart, values{"image": values{"repository": "hub:v1"}}, "'/image/repository'"},
		{"a registry with a port", hubChart, values{"image": values{"repository": "localhost:5000/hub", "tag": "v1"}}, ""},
		{"an unknown pull policy", hubChart, values{
			"image": values{"pullPolicy": "Sometimes"},
		}, "'/image/pullPolicy'"},
		{"an extra argument that is no flag", hubChart, values{"extraArgs": []any{"zap-devel"}}, "'/extraArgs/0'"},
		{"a disruption budget in percent", hubChart, values{"podDisruptionBudget": values{"minAvailable": "50%"}}, ""},

		{"an unknown field", agentChart, values{"server": "https://hub.example.com"}, "'server'"},
		{"a token without an API server URL", agentChart, values{
			"token": "a.b.c", "apiServerCA": ca, "tokenName": "a", "tokenKey": "a",
		}, "'/apiServerURL'"},
		{"a token without a CA", agentChart, values{
			"token": "abc123.0123456789abcdef", "apiServerURL": "https://h",
		}, "'/apiServerCA'"},
		{"a ServiceAccount token without a key", agentChart, values{
			"token": "a.b.c", "apiServerURL": "https://h", "apiServerCA": ca, "tokenName": "a",
		}, "'/tokenKey'"},
		{"a bootstrap token without a key", agentChart, values{
			"token": "abc123.0123456789abcdef", "apiServerURL": "https://h:6443", "apiServerCA": ca,
		}, ""},
		{"an API server URL without a token", agentChart, values{"apiServerURL": "https://h"}, "'/token'"},
		{"a cluster name that is no DNS label", agentChart, values{"clusterName": "East"}, "'/clusterName'"},
		{"a hub name that is no DNS label", agentChart, values{"hub": "west.example"}, "'/hub'"},
		{"a label value that is a number", agentChart, values{"labels": values{"a": 1}}, "'/labels/a'"},
		{"applyAnything without Works", agentChart, values{"works": false, "applyAnything": true}, "'/works'"},
	} {
		_, err := template(t, test.chart, test.values)
		if test.field == "" {
			require.NoError(t, err, test.reason)
			continue
		}
		require.ErrorContains(t, err, test.field, "%s: %s", test.chart, test.reason)
		require.NotContains(t, err.Error(), "0123456789abcdef", "an error contains no token")
	}
}

func TestHubChart_Values(t *testing.T) {
	const ca = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	objects, err := template(t, hubChart, values{
		"image":        values{"repository": "registry.example.com/hub", "tag": "v1"},
		"apiServerURL": "https://hub.example.com:6443", "apiServerCA": ca, "skipDefinitions": true,
		"metrics": values{"enabled": false}, "networkPolicy": values{"enabled": false},
		"podDisruptionBudget": values{"enabled": false}, "extraArgs": []any{"--a=b c"},
		"extraEnv": []any{values{"name": "HTTPS_PROXY", "value": "http://proxy"}},
		"replicas": 1, "leaderElection": values{"enabled": false},
	})
	require.NoError(t, err)
	c := containerOf(t, find(objects, "Deployment", hubChart))
	require.Equal(t, "registry.example.com/hub:v1", c.Image)
	require.Equal(t, []string{
		"--health-probe-bind-address=:8081", "--api-server-url=https://hub.example.com:6443",
		"--api-server-ca-file=/etc/muster/api-server/ca.crt", "--skip-definitions", "--a=b c",
	}, c.Args)
	require.Equal(t, "HTTPS_PROXY", c.Env[1].Name)
	require.Equal(t, "/etc/muster/api-server", c.VolumeMounts[0].MountPath)
	data, _, err := unstructured.NestedString(find(objects, "ConfigMap", "muster-hub-api-server").Object, "data", "ca.crt")
	require.NoError(t, err)
	require.Equal(t, ca, data)
	for _, kind := range []string{"NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceMonitor"} {
		require.Nil(t, find(objects, kind, hubChart), kind)
	}
	require.Nil(t, find(objects, "Role", "muster-hub-leader-election"))
	require.Equal(t, "keep", find(objects, "Namespace", "muster-registration").GetAnnotations()["helm.sh/resource-policy"])
}

func TestAgentChart_Values(t *testing.T) {
	objects, err := template(t, agentChart, values{
		"clusterName": "east", "clusterID": "0a1b", "labels": values{"b": "2", "a": "1"}, "hub": "west",
		"applyAnything": true,
		"apiServerURL":  "https://h", "apiServerCA": "-----BEGIN CERTIFICATE-----\n", "token": "abc123.0123456789abcdef",
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"--works", "--health-probe-bind-address=:8081", "--name=east", "--cluster-id=0a1b", "--label=a=1", "--label=b=2",
		"--hub=west",
	}, containerOf(t, find(objects, "Deployment", agentChart)).Args)
	require.NotNil(t, find(objects, "Secret", "muster-bootstrap-west"))
	require.NotNil(t, find(objects, "ClusterRoleBinding", "muster-agent-apply-anything"))
	for role, names := range map[string][]string{
		"muster-agent-member":          {"muster-agent-west", "muster-bootstrap-west"},
		"muster-agent-leader-election": {"muster-agent-west"},
	} {
		rules, _, err := unstructured.NestedSlice(find(objects, "Role", role).Object, "rules")
		require.NoError(t, err)
		var found []string
		for _, rule := range rules {
			of, _, err := unstructured.NestedStringSlice(rule.(map[string]any), "resourceNames")
			require.NoError(t, err)
			found = append(found, of...)
		}
		require.Equal(t, names, found, role)
	}
}

// bootstrapIn returns the key join.yaml of the Secret that the chart writes.
func bootstrapIn(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	secret := find(objects, "Secret", "muster-bootstrap")
	require.NotNil(t, secret)
	encoded, _, err := unstructured.NestedString(secret.Object, "data", registration.BootstrapKey)
	require.NoError(t, err)
	data, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(t, err)
	return string(data)
}

// TestHubChart_ClusterAPI checks that the import of Clusters has the role of the hub in each namespace.
func TestHubChart_ClusterAPI(t *testing.T) {
	objects, err := template(t, hubChart, values{
		"push": values{"enabled": true}, "clusterAPI": values{"namespaces": []any{"a", "b"}, "leaveDeleted": true}})
	require.NoError(t, err)
	args := containerOf(t, find(objects, "Deployment", hubChart)).Args
	require.Contains(t, args, "--cluster-api-namespaces=a,b")
	require.Contains(t, args, "--cluster-api-leave-deleted")
	var namespaces []string
	for _, o := range objects {
		if o.GetKind() == "RoleBinding" && o.GetName() == "muster-cluster-api-source" {
			namespaces = append(namespaces, o.GetNamespace())
			role, _, err := unstructured.NestedString(o.Object, "roleRef", "name")
			require.NoError(t, err)
			require.NotNil(t, find(objects, "ClusterRole", role))
		}
	}
	require.ElementsMatch(t, []string{"a", "b"}, namespaces)
	require.NotNil(t, find(objects, "ClusterRoleBinding", "muster-cluster-api"))

	objects, err = template(t, hubChart, nil)
	require.NoError(t, err)
	require.Nil(t, find(objects, "ClusterRole", "muster-cluster-api-source"))

	manifests, err := deploy.Hub("cluster-api")
	require.NoError(t, err)
	require.NotNil(t, find(manifests, "ClusterRole", "muster-cluster-api-source"))
}
