package disaster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon"
	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// greeter is an add-on with one Deployment.
type greeter struct{}

func (greeter) Name() string { return "greeter" }

func (greeter) Manifests(_ context.Context, in addon.Input) ([]client.Object, error) {
	d := &appsv1.Deployment{}
	err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(deploymentYAML, "web", "greeter")), d)
	d.Namespace = in.InstallNamespace
	return []client.Object{d}, err
}

// deploymentYAML is the Deployment that each member runs.
const deploymentYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.k8s.io/pause:3.10}]}
`

const workSetYAML = `
apiVersion: placement.muster.dev/v1alpha1
kind: WorkSet
metadata: {name: shop, namespace: apps}
spec:
  placements: [{name: shop}]
  manifests:
  - {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: shop}, data: {version: "1"}}
  - apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data, namespace: shop}
    spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: shop-data,
      resources: {requests: {storage: 1Gi}}}
`

const placementYAML = `
apiVersion: placement.muster.dev/v1alpha1
kind: Placement
metadata: {name: shop, namespace: apps}
spec: {policy: {type: PickAll}}
`

const addonYAML = `
apiVersion: addon.muster.dev/v1alpha1
kind: Addon
metadata: {name: greeter}
spec: {install: {type: Placements, placements: [{namespace: apps, name: shop}]}}
`

const workYAML = `
apiVersion: work.muster.dev/v1alpha1
kind: Work
metadata: {name: by-hand}
spec:
  manifests:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: by-hand, namespace: default}, data: {version: "1"}}
`

func object[T client.Object](t testing.TB, text string, into T) T {
	t.Helper()
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), into))
	return into
}

func workSet(t testing.TB) *placementv1alpha1.WorkSet {
	t.Helper()
	set := object(t, workSetYAML, &placementv1alpha1.WorkSet{})
	deployment, err := yaml.YAMLToJSON([]byte(deploymentYAML))
	require.NoError(t, err)
	set.Spec.Manifests = append(set.Spec.Manifests, workv1alpha1.Manifest{})
	set.Spec.Manifests[len(set.Spec.Manifests)-1].Raw = deployment
	return set
}

// userObjects returns the objects that users create on the hub, in the order of their creation.
func (w *system) userObjects() []client.Object {
	t := w.t
	return []client.Object{
		object(t, placementYAML, &placementv1alpha1.Placement{}), workSet(t), object(t, addonYAML, &addonv1alpha1.Addon{}),
	}
}

func (w *system) handWritten(m *member) *workv1alpha1.Work {
	work := object(w.t, workYAML, &workv1alpha1.Work{})
	work.Namespace = "member-" + m.name
	return work
}

// deploy creates the workloads on the hub, and waits until each member runs them. It may be called again when members
// have joined.
func (w *system) deploy() {
	w.t.Helper()
	ctx := w.t.Context()
	create := func(m *member, o client.Object) {
		require.NoError(w.t, client.IgnoreAlreadyExists(m.client.Create(ctx, o)))
	}
	for _, m := range w.members {
		create(m, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "shop-data"},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:                      corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")},
				AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
				PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}},
			},
		})
	}
	w.apply()
	if w.version == "" {
		w.version = "1"
	}
	for _, m := range w.members {
		w.waitForWorkloads(m)
		// The application writes its own data next to the objects that the hub applied.
		create(m, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "application-data"}, Data: map[string]string{"orders": "42"},
		})
	}
}

// apply creates the objects of users on the hub that do not exist.
func (w *system) apply() {
	w.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}
	objects := append([]client.Object{namespace}, w.userObjects()...)
	for _, m := range w.members {
		objects = append(objects, w.handWritten(m))
	}
	for _, o := range objects {
		w.eventually(fmt.Sprintf("%T %s is created", o, o.GetName()), func() error {
			return client.IgnoreAlreadyExists(w.client.Create(w.t.Context(), o.DeepCopyObject().(client.Object)))
		})
	}
}

// waitForWorkloads waits until a member runs all workloads, with the current version of the ConfigMap.
func (w *system) waitForWorkloads(m *member) {
	w.t.Helper()
	ctx, version := w.t.Context(), w.version
	w.eventually(fmt.Sprintf("%s runs version %s", m.name, version), func() error {
		config, hand, claim := &corev1.ConfigMap{}, &corev1.ConfigMap{}, &corev1.PersistentVolumeClaim{}
		web, greeter := &appsv1.Deployment{}, &appsv1.DeploymentList{}
		err := errors.Join(
			m.client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "config"}, config),
			m.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "by-hand"}, hand),
			m.client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "data"}, claim),
			m.client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, web),
			m.client.List(ctx, greeter),
		)
		switch {
		case err != nil:
			return fmt.Errorf("%w; deleted: %v", err, m.recorded())
		case config.Data["version"] != version:
			return fmt.Errorf("ConfigMap shop/config has version %q", config.Data["version"])
		case claim.Status.Phase != corev1.ClaimBound:
			return fmt.Errorf("PersistentVolumeClaim shop/data is %s", claim.Status.Phase)
		case web.Status.AvailableReplicas == 0:
			return errors.New("Deployment shop/web is not available")
		case len(greeter.Items) < 2:
			return errors.New("the Deployment of add-on greeter does not exist")
		}
		return nil
	})
}

// update changes the ConfigMap of the WorkSet, and waits until each member has the change.
func (w *system) update() {
	w.t.Helper()
	w.write()
	for _, m := range w.members {
		w.waitForWorkloads(m)
	}
}

// versions counts the versions that tests have written. No version is written twice, not even to a restored hub.
var versions atomic.Int64

// write changes the WorkSet, and does not wait for its delivery.
func (w *system) write() {
	w.t.Helper()
	w.version = fmt.Sprint(1 + versions.Add(1))
	set := &placementv1alpha1.WorkSet{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "shop"}}
	w.eventually("the WorkSet is updated", func() error {
		if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		for i := range set.Spec.Manifests {
			raw := string(set.Spec.Manifests[i].Raw)
			if strings.Contains(raw, `"ConfigMap"`) {
				set.Spec.Manifests[i].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"config",` +
					`"namespace":"shop"},` +
					`"data":{"version":"` + w.version + `"}}`)
			}
		}
		return w.client.Update(w.t.Context(), set)
	})
}
