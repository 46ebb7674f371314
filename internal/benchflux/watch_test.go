package benchflux_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// watch is an [apply.Metadata] of the ConfigMaps that muster has applied in all namespaces, as in the agent.
type watch struct{ informer cache.SharedIndexInformer }

func newWatch(b *testing.B, config *rest.Config) watch {
	b.Helper()
	c, err := metadata.NewForConfig(config)
	require.NoError(b, err)
	factory := metadatainformer.NewFilteredSharedInformerFactory(c, 0, metav1.NamespaceAll, func(o *metav1.ListOptions) {
		o.LabelSelector = v1alpha1.AppliedLabel + "=true"
	})
	informer := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer()
	stop := make(chan struct{})
	factory.Start(stop)
	b.Cleanup(func() {
		close(stop)
		factory.Shutdown()
	})
	require.Eventually(b, informer.HasSynced, deadline, 10*time.Millisecond)
	return watch{informer}
}

// Lookup implements [apply.Metadata].
func (w watch) Lookup(kind schema.GroupVersionKind, key client.ObjectKey) *metav1.PartialObjectMetadata {
	if kind != corev1.SchemeGroupVersion.WithKind("ConfigMap") {
		return nil
	}
	item, found, err := w.informer.GetStore().GetByKey(key.String())
	if err != nil || !found {
		return nil
	}
	return item.(*metav1.PartialObjectMetadata)
}

// waitFor waits until the watch has observed the versions of those objects that muster has applied.
func (w watch) waitFor(b *testing.B, objects []corev1.ConfigMap) {
	b.Helper()
	require.Eventually(b, func() bool {
		for i := range objects {
			if objects[i].Labels[v1alpha1.AppliedLabel] != "true" {
				continue
			}
			known := w.Lookup(corev1.SchemeGroupVersion.WithKind("ConfigMap"), client.ObjectKeyFromObject(&objects[i]))
			if known == nil || known.ResourceVersion != objects[i].ResourceVersion {
				return false
			}
		}
		return true
	}, deadline, 5*time.Millisecond)
}
