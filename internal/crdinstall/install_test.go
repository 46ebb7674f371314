package crdinstall

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answers is a reader of one object, as an API server may show it.
type answers struct {
	client.Client
	status map[string]any
}

func (a answers) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.(*unstructured.Unstructured).Object["status"] = a.status
	return nil
}

func TestNotEstablished(t *testing.T) {
	condition := func(kind, status, message string) any {
		return map[string]any{"type": kind, "status": status, "message": message}
	}
	for _, test := range []struct {
		reason string
		status map[string]any
		want   string
	}{
		{"no status yet", nil, "x: the API server has not looked at it"},
		{"an API server shows null before it has looked at a definition", map[string]any{"conditions": nil}, "x: the API server has not looked at it"},
		{"what is wrong with it is said", map[string]any{"conditions": []any{condition("NamesAccepted", "False", "the name is taken")}}, "x: the name is taken"},
		{"established", map[string]any{"conditions": []any{condition("NamesAccepted", "True", ""), condition("Established", "True", "")}}, ""},
	} {
		definition := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}}}
		got, err := notEstablished(t.Context(), answers{status: test.status}, definition)
		require.NoError(t, err, test.reason)
		require.Equal(t, test.want, got, test.reason)
	}
}
