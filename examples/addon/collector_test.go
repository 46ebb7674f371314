package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/health"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement/rollout"
)

func rules(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	if text != "" {
		u.Object["data"] = map[string]any{"rules": text}
	}
	return u
}

// TestManifests tests the manifests of an add-on, which requires no cluster.
func TestManifests(t *testing.T) {
	manifests, err := collector{version: "1.0"}.Manifests(t.Context(), addon.Input{
		Member:           &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}},
		InstallNamespace: "logs",
		Settings:         config.Settings{Variables: map[string]string{"ENDPOINT": "logs.example.com"}},
		Configs:          []*unstructured.Unstructured{rules("pods")},
	})
	require.NoError(t, err)
	require.Len(t, manifests, 3)
	require.Equal(t, map[string]string{"endpoint": "logs.example.com", "rules": "pods"},
		manifests[0].(*corev1.ConfigMap).Data)
	for _, m := range manifests {
		require.Equal(t, "logs", m.GetNamespace(), m.GetName())
	}
}

func TestValidateConfig(t *testing.T) {
	require.NoError(t, collector{}.ValidateConfig(rules("pods")))
	require.ErrorContains(t, collector{}.ValidateConfig(rules("")), "rules is required")
}

func TestHealth(t *testing.T) {
	ready := health.Work{Generation: 1, Observed: 1, Available: metav1.ConditionTrue}
	starting := health.Work{Generation: 2, Observed: 1, Available: metav1.ConditionTrue, Message: "It starts."}
	for _, test := range []struct {
		reason string
		works  []health.Work
		lines  int
		err    error
		want   rollout.Health
	}{
		{"all Works are available, and the store receives lines", []health.Work{ready}, 12, nil, rollout.Succeeded},
		{"all Works are available, and the store receives no lines", []health.Work{ready}, 0, nil, rollout.Failed},
		{"the status of a Work is about a former generation", []health.Work{ready, starting}, 0, nil, rollout.Progressing},
		{"the store cannot be reached", []health.Work{ready}, 0, errors.New("the store is down"), ""},
	} {
		c := collector{received: func(context.Context, string) (int, error) { return test.lines, test.err }}
		got, err := c.Health(t.Context(), addon.Input{Member: &membershipv1alpha1.MemberCluster{}}, test.works)
		require.Equal(t, test.want, got.Health, test.reason)
		require.Equal(t, test.err, err, test.reason)
	}
}
