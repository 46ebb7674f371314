package crds_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/crds"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "addon-crds"}}

func TestMain(m *testing.M) { os.Exit(localplane.Run(m, &plane)) }

// install is set up once: applying the definitions again takes the API server a second, because of all their rules.
var install struct {
	sync.Once
	err error
}

func installed(t *testing.T) client.Client {
	t.Helper()
	c := mustertest.Client(
		t,
		plane.ForTest(t).Config(),
		mustertest.Scheme(v1alpha1.AddToScheme, apiextensionsv1.AddToScheme),
	)
	install.Do(func() { install.err = crds.Install(t.Context(), c) })
	require.NoError(t, install.err)
	return c
}

func TestInstall_ServedAtOnceAndIdempotent(t *testing.T) {
	c := installed(t)
	// The next request must not fail with an unknown kind.
	for _, list := range []client.ObjectList{&v1alpha1.AddonList{}, &v1alpha1.MemberAddonList{},
		&v1alpha1.AddonConfigList{}, &v1alpha1.AddonTemplateList{}} {
		require.NoError(t, c.List(t.Context(), list))
	}

	before := crdtest.Versions(t, c)
	require.Equal(t, []string{
		"addonconfigs.addon.muster.dev",
		"addons.addon.muster.dev",
		"addontemplates.addon.muster.dev",
		"memberaddons.addon.muster.dev",
	}, slices.Sorted(maps.Keys(before)))
	crdtest.InstallsNothing(t, c, crds.Install)
	require.Equal(t, before, crdtest.Versions(t, c), "the second Install must not write")
}

func TestInstall_ContextDeadline(t *testing.T) {
	c := installed(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	require.ErrorIs(t, crds.Install(ctx, c), context.DeadlineExceeded)
}
