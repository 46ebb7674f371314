package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/mustertest/localplane"
)

const (
	hubChart   = "muster-hub"
	agentChart = "muster-agent"
	namespace  = "muster-system"
)

// values of a chart, as a values file or --set results in.
type values = map[string]any

func folder(name string) string { return filepath.Join("..", "..", "deploy", "charts", name) }

func load(t *testing.T, name string) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(folder(name))
	require.NoError(t, err)
	return loaded
}

// template renders a chart without an API server, like helm template.
func template(t *testing.T, name string, v values) ([]*unstructured.Unstructured, error) {
	t.Helper()
	install := action.NewInstall(&action.Configuration{Log: t.Logf})
	install.DryRun, install.ClientOnly, install.IncludeCRDs = true, true, true
	install.ReleaseName, install.Namespace = name, namespace
	install.KubeVersion = &chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	rendered, err := install.Run(load(t, name), v)
	if err != nil {
		return nil, err
	}
	return objectsOf(t, rendered), nil
}

// objectsOf returns the objects of a release.
func objectsOf(t *testing.T, release *release.Release) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq(release.Manifest, "\n---\n") {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &object.Object), document)
		if len(object.Object) > 0 {
			out = append(out, object)
		}
	}
	return out
}

// find returns the one object of a kind with a name, or nil.
func find(objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	return nil
}

// helm is the command line of Helm for one release on one control plane.
type helm struct {
	t      *testing.T
	config *action.Configuration
	name   string
}

func newHelm(t *testing.T, config *rest.Config, name string) *helm {
	t.Helper()
	kubeconfig, err := localplane.Kubeconfig(config)
	require.NoError(t, err)
	settings := cli.New()
	settings.KubeConfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(settings.KubeConfig, kubeconfig, 0o600))
	settings.SetNamespace(namespace)
	h := &helm{t: t, config: &action.Configuration{}, name: name}
	require.NoError(t, h.config.Init(settings.RESTClientGetter(), namespace, "secret", func(string, ...any) {}))
	return h
}

// install is helm install --create-namespace.
func (h *helm) install(v values) []*unstructured.Unstructured {
	h.t.Helper()
	install := action.NewInstall(h.config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = h.name, namespace, true
	installed, err := install.Run(load(h.t, h.name), v)
	require.NoError(h.t, err)
	return objectsOf(h.t, installed)
}

func (h *helm) upgrade(v values) []*unstructured.Unstructured {
	h.t.Helper()
	upgrade := action.NewUpgrade(h.config)
	upgrade.Namespace = namespace
	upgraded, err := upgrade.Run(h.name, load(h.t, h.name), v)
	require.NoError(h.t, err)
	return objectsOf(h.t, upgraded)
}

func (h *helm) uninstall() {
	h.t.Helper()
	_, err := action.NewUninstall(h.config).Run(h.name)
	require.NoError(h.t, err)
}
