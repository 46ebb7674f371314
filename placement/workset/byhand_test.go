package workset_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement/workset"
	"github.com/muster-sdk/muster/work/agent"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

// TestGeneratedWork_DeletedByUser checks that a generated Work that a user deletes is created again, without a change
// on the member, which has a real agent. The deletion of the WorkSet is a request.
func TestGeneratedWork_DeletedByUser(t *testing.T) {
	testkit.Virtual(t, testGeneratedWorkDeletedByUser)
}

func testGeneratedWorkDeletedByUser(t *testing.T) {
	h := newHub(t)
	require.NoError(t, workcrds.InstallOnMember(t.Context(), h.Client))
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	require.NoError(t, client.IgnoreAlreadyExists(h.Client.Create(t.Context(), shop)))
	h.members("a")
	h.place("all")
	h.start(workset.Options{})
	a, err := agent.New(agent.Options{Hub: h.Config, Member: h.Config, Namespace: "member-" + h.member("a"),
		HubName: h.Namespace, StatusInterval: 50 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Start(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })

	name := h.Namespace
	h.distribute("web", "all", nil, configMap(name, map[string]string{"color": "blue"}))
	h.succeeded("web", 1)
	before, work := &corev1.ConfigMap{}, h.works("web")["a/web-0"]
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, before))

	require.NoError(t, h.Client.Delete(t.Context(), work))
	h.Holds("the Work is created again", func() bool {
		now := h.works("web")["a/web-0"]
		return now != nil && now.UID != work.UID && now.Status.ObservedGeneration == now.Generation
	})
	h.succeeded("web", 1)
	after := &corev1.ConfigMap{}
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(before), after))
	require.Equal(t, before.UID, after.UID, "the object was deleted and created again")
	require.Equal(t, before.ResourceVersion, after.ResourceVersion, "the object was written")
	h.Holds("no orphan is reported any more", func() bool { return a.Orphans().Works == 0 })

	require.NoError(t, h.Client.Delete(t.Context(), h.get("web")))
	h.Holds("the deletion of the WorkSet removes the object", func() bool {
		return apierrors.IsNotFound(h.Client.Get(t.Context(), client.ObjectKeyFromObject(before), after))
	})
}
