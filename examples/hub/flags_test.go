package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestNamespaceQuotaFlag(t *testing.T) {
	f, err := parse([]string{
		"--namespace-quota=count/works.work.muster.dev=500,count/secrets=20", "--namespace-quota", "count/secrets=30",
	})
	require.NoError(t, err)
	require.Equal(t, corev1.ResourceList{
		"count/works.work.muster.dev": resource.MustParse("500"), "count/secrets": resource.MustParse("30"),
	}, corev1.ResourceList(f.namespaceQuota))
	for _, invalid := range []string{"", "count/secrets", "count/secrets=many", "count/secrets=1,"} {
		_, err := parse([]string{"--namespace-quota=" + invalid})
		require.ErrorContains(t, err, "must be NAME=NUMBER", invalid)
	}
	f, err = parse(nil)
	require.NoError(t, err)
	require.Empty(t, f.namespaceQuota)
}
