package storeversion_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/storeversion"
)

func TestDetector_Observe(t *testing.T) {
	var d storeversion.Detector
	for _, step := range []struct {
		version string
		rewound bool
		reason  string
	}{
		{"100", false, "the first resourceVersion is the reference"},
		{"100", false, "no write"},
		{"250", false, "the store grows"},
		{"", false, "an empty resourceVersion is ignored"},
		{"abc", false, "a resourceVersion that is not a number is ignored"},
		{"99", true, "the store is older than before"},
		{"101", false, "the store grows after the restore"},
		{"1000", false, "resourceVersions are compared as numbers"},
	} {
		require.Equal(t, step.rewound, d.Observe(step.version), step.reason)
	}
}

// fakeReader is a reader whose lists have these resourceVersions, in this order. An empty one is an error.
type fakeReader struct {
	client.Reader
	versions []string
}

func (a *fakeReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if len(a.versions) == 0 || a.versions[0] == "" {
		a.versions = a.versions[min(1, len(a.versions)):]
		return errors.New("no response")
	}
	list.SetResourceVersion(a.versions[0])
	a.versions = a.versions[1:]
	return nil
}

func TestMonitor_Start(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		monitor := &storeversion.Monitor{
			Reader: &fakeReader{versions: []string{"5", "", "7", "7", "3"}}, List: &corev1.ConfigMapList{}, Server: "the hub",
		}
		began := time.Now()
		var rewound *storeversion.RewoundError
		require.ErrorAs(t, monitor.Start(t.Context()), &rewound)
		require.Equal(t, "the hub", rewound.Server)
		require.Equal(t, 4*storeversion.DefaultInterval, time.Since(began))
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		reader := &fakeReader{versions: []string{"5", "6", "7"}}
		monitor := &storeversion.Monitor{Reader: reader, List: &corev1.ConfigMapList{}}
		require.NoError(t, monitor.Start(ctx), "neither a store that grows nor a failed list ends the monitor")
	})
}

// TestMonitor_Note checks a restore to a state that is later than the last list, and earlier than a later event of a
// watch. The watched kind can have another store, with other resourceVersions.
func TestMonitor_Note(t *testing.T) {
	for _, test := range []struct {
		reason   string
		versions []string // resourceVersions of the lists of both kinds
		noted    string   // resourceVersion of the event after the first list
		rewound  bool
	}{
		{"the store has later writes", []string{"5", "7", "8"}, "6", false},
		{"a resourceVersion that is not a number", []string{"5", "7", "8"}, "x", false},
		{"the store is older than an event", []string{"5", "7", "7"}, "9", true},
		{"the watched kind has another store", []string{"5", "7", "100", "8", "101"}, "90", false},
		{"the list of the watched kind fails", []string{"5", "7", ""}, "9", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
			defer cancel()
			monitor := &storeversion.Monitor{
				Reader: &fakeReader{versions: test.versions}, List: &corev1.ConfigMapList{}, Watched: &corev1.SecretList{},
			}
			ended := make(chan error, 1)
			go func() { ended <- monitor.Start(ctx) }()
			synctest.Wait() // waits for the first list
			for _, version := range []string{test.noted, "3"} {
				monitor.Note(version)
			}
			var rewound *storeversion.RewoundError
			require.Equal(t, test.rewound, errors.As(<-ended, &rewound), test.reason)
		})
	}
}

func TestMonitor_Compare(t *testing.T) {
	version := func(uid types.UID, version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
	}
	synctest.Test(t, func(t *testing.T) {
		monitor := &storeversion.Monitor{Reader: &fakeReader{}, List: &corev1.ConfigMapList{}, Server: "the hub"}
		ended := make(chan error, 1)
		go func() { ended <- monitor.Start(t.Context()) }()
		for _, same := range [][2]*corev1.ConfigMap{
			{version("a", "9"), version("a", "9")},
			{version("a", "9"), version("a", "10")},
			{version("a", "9"), version("b", "8")},
			{version("a", "x"), version("a", "8")},
		} {
			monitor.Compare(same[0], same[1])
		}
		synctest.Wait()
		require.Empty(t, ended, "none of these versions requires a restore")
		monitor.Compare(version("a", "10"), version("a", "9"))
		monitor.Compare(version("a", "10"), version("a", "9"))
		var rewound *storeversion.RewoundError
		require.ErrorAs(t, <-ended, &rewound)
	})
}
