package apiserver_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/muster-sdk/muster/mustertest/apiserver"
)

func BenchmarkCreate(b *testing.B) {
	maps := kubernetes.NewForConfigOrDie(start(b, apiserver.Options{}).Admin()).CoreV1().ConfigMaps("default")
	i := 0
	for b.Loop() {
		i++
		_, err := maps.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i)}},
			metav1.CreateOptions{})
		require.NoError(b, err)
	}
}

func BenchmarkGet(b *testing.B) {
	maps := kubernetes.NewForConfigOrDie(start(b, apiserver.Options{}).Admin()).CoreV1().ConfigMaps("default")
	_, err := maps.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
	require.NoError(b, err)
	for b.Loop() {
		_, err := maps.Get(b.Context(), "m", metav1.GetOptions{})
		require.NoError(b, err)
	}
}

// BenchmarkWatch_FanOut measures one write and its delivery to 100 watches.
func BenchmarkWatch_FanOut(b *testing.B) {
	const watches = 100
	maps := kubernetes.NewForConfigOrDie(start(b, apiserver.Options{}).Admin()).CoreV1().ConfigMaps("default")
	m, err := maps.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
	require.NoError(b, err)
	var open []watch.Interface
	for range watches {
		w, err := maps.Watch(b.Context(), metav1.ListOptions{ResourceVersion: m.ResourceVersion})
		require.NoError(b, err)
		defer w.Stop()
		open = append(open, w)
	}
	i := 0
	for b.Loop() {
		i++
		m.Data = map[string]string{"i": fmt.Sprint(i)}
		m, err = maps.Update(b.Context(), m, metav1.UpdateOptions{})
		require.NoError(b, err)
		for _, w := range open {
			<-w.ResultChan()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/watches, "ns/event")
}
