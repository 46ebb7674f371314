package workset_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestCrash stops the controllers at each write in the life of a WorkSet, before the request is sent or before the
// response is received, and continues with new controllers.
func TestCrash(t *testing.T) {
	writes := 0
	t.Run("whole", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			whole := mustertest.NewCrash(0, mustertest.RequestLost)
			newHollows(t, 4).runLifecycle(t, "whole", whole)
			writes = whole.Writes()
		})
	})
	t.Logf("a lifecycle has %d writes", writes)
	require.Greater(t, writes, 20)
	t.Run("responses are lost while no watch works", func(t *testing.T) {
		testkit.Virtual(t, func(t *testing.T) { newHollows(t, 4).checkLostResponses(t) })
	})
	for at := 1; at <= writes; at++ {
		for _, how := range []mustertest.Loss{mustertest.ResponseLost, mustertest.RequestLost} {
			if !testkit.Crashes(at, how) {
				continue
			}
			t.Run(fmt.Sprintf("at/%d-%s", at, how), func(t *testing.T) {
				testkit.Virtual(t, func(t *testing.T) {
					newHollows(t, 4).runLifecycle(t, fmt.Sprintf("at-%d-%s", at, strings.ToLower(string(how))),
						mustertest.NewCrash(at, how))
				})
			})
		}
	}
}

// lifeTest is the lifecycle of a WorkSet in its own namespace, in parallel with other ones.
type lifeTest struct {
	*hub

	fleet *hollows
	uids  map[string]string // the UIDs of the Works, and of the objects on the members
	poll  func()            // called in each poll of until; may be nil
}

// runLifecycle runs the lifecycle of a WorkSet from its creation to its deletion, and checks the objects after each
// step.
func (f *hollows) runLifecycle(t *testing.T, name string, c *mustertest.Crash) {
	l := &lifeTest{fleet: f, hub: f.in(t, name)}
	require.NoError(t, l.Client.Create(t.Context(), namespace(name)))
	var w traffic
	w.reset()
	stop := f.control(t, name, &w, c.Wrap)
	defer func() { stop() }()
	l.poll = func() { // starts new controllers after the crash
		select {
		case <-c.Done():
			t.Logf("crashed at %s", c.Request())
			stop()
			stop, l.poll = f.control(t, name, &w, nil), nil
		default:
		}
	}

	l.choose("m000", "m001")
	l.distribute("web", "some", func(s *v1alpha1.WorkSetSpec) {
		s.Rollout = v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutProgressive, MaxConcurrency: new(intstr.FromInt32(1))}
	}, l.object("blue"))
	l.requireExactly(1, 1, counts{"m000 blue": 1, "m001 blue": 1})
	l.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Manifests[0] = l.object("green") })
	l.requireExactly(2, 2, counts{"m000 green": 2, "m001 green": 2})
	l.choose("m000", "m002", "m003")
	l.requireExactly(2, 2, counts{"m000 green": 2, "m002 green": 1, "m003 green": 1})
	l.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Revision = s.Status.Revisions[1].Name })
	l.requireExactly(2, 1, counts{"m000 blue": 3, "m002 blue": 2, "m003 blue": 2})

	require.NoError(t, l.Client.Delete(t.Context(), l.get("web")))
	l.until("all objects are deleted", func() error {
		set := &v1alpha1.WorkSet{}
		if err := l.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "web"}, set); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the WorkSet exists"), err)
		}
		var list workv1alpha1.AppliedWorkList
		require.NoError(t, f.members.List(t.Context(), &list))
		kept := slices.ContainsFunc(list.Items, func(a workv1alpha1.AppliedWork) bool {
			return strings.HasPrefix(a.Spec.Work.Name, name+".")
		})
		if works, objects := f.observed.of(name), f.objects(t, name); kept || len(works) > 0 || len(objects) > 0 {
			return fmt.Errorf("%d Works, %d objects, AppliedWorks: %t", len(works), len(objects), kept)
		}
		return nil
	})
}

// object returns the manifest of the WorkSet.
func (l *lifeTest) object(color string) workv1alpha1.Manifest {
	return configMap(l.Namespace, map[string]string{"color": color})
}

// choose creates the Placement, or changes its clusters.
func (l *lifeTest) choose(members ...string) {
	l.T.Helper()
	p := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: "some"}}
	err := l.Client.Get(l.T.Context(), client.ObjectKeyFromObject(p), p)
	require.NoError(l.T, client.IgnoreNotFound(err))
	before := p.DeepCopy()
	p.Spec.Policy = v1alpha1.PlacementPolicy{Type: v1alpha1.PickFixed, ClusterNames: members}
	if err != nil {
		require.NoError(l.T, l.Client.Create(l.T.Context(), p))
		return
	}
	require.NoError(l.T, l.Client.Patch(l.T.Context(), p, client.MergeFrom(before)))
}

// requireExactly waits until the number of revisions is right and the current one has the given number, the members
// have exactly the wanted objects, each Work has been written as often as given since its creation, and the WorkSet
// reports success. It fails if an object or a Work was created again.
func (l *lifeTest) requireExactly(revisions, number int, want counts) {
	l.T.Helper()
	l.until(fmt.Sprint("want exactly ", want), func() error {
		found, uids := counts{}, map[string]string{}
		for member, o := range l.fleet.objects(l.T, l.Namespace) {
			found[member+" "+o.Data["color"]] = 0
			uids["object on "+member] = string(o.UID)
		}
		for _, w := range l.fleet.observed.of(l.Namespace) {
			member := strings.TrimPrefix(w.Namespace, "member-")
			for object := range found {
				if strings.HasPrefix(object, member+" ") && isAvailable(w) && w.Name == l.Namespace+".web-0" {
					found[object] = int(w.Generation)
				}
			}
			uids["Work of "+member] += string(w.UID) // the UIDs of two Works differ from that of one
		}
		if !maps.Equal(want, found) {
			return fmt.Errorf("got %v", found)
		}
		for object, uid := range uids {
			if was := l.uids[object]; was != "" && was != uid {
				return fmt.Errorf("the %s was created again", object)
			}
		}
		if len(uids) != 2*len(want) {
			return fmt.Errorf("unexpected objects: %v", slices.Sorted(maps.Keys(uids)))
		}
		l.uids = uids
		return l.checkStatus(revisions, number, int32(len(want)))
	})
}

// checkStatus returns an error if the status of the WorkSet does not match the wanted state.
func (l *lifeTest) checkStatus(revisions, number int, clusters int32) error {
	set := &v1alpha1.WorkSet{}
	if err := l.Client.Get(l.T.Context(), client.ObjectKey{Namespace: l.Namespace, Name: "web"}, set); err != nil {
		return err
	}
	s := &set.Status
	wanted := v1alpha1.ClusterCounts{Total: clusters, Updated: clusters, Applied: clusters, Available: clusters}
	if s.ObservedGeneration != set.Generation || s.Counts != wanted || s.Rollout.Phase != v1alpha1.PhaseSucceeded ||
		s.Rollout.Revision != s.Revision {
		return fmt.Errorf("status does not match, message: %s", s.Message)
	}
	var kept v1alpha1.WorkSetRevisionList
	if err := l.Client.List(l.T.Context(), &kept, client.InNamespace(l.Namespace)); err != nil {
		return err
	}
	var numbers []int
	for _, r := range s.Revisions {
		if numbers = append(numbers, int(r.Number)); int(r.Number) == number && r.Name != s.Revision {
			return fmt.Errorf("revision %d is not the current one", number)
		}
	}
	want := []int{2, 1}[2-revisions:]
	if !slices.Equal(want, numbers) || len(kept.Items) != revisions {
		return fmt.Errorf("got revisions %v in the status, and %d WorkSetRevisions", numbers, len(kept.Items))
	}
	return nil
}

// until waits until wrong returns no error.
func (l *lifeTest) until(what string, wrong func() error) {
	l.T.Helper()
	mustertest.Eventually(l.T, pollInterval, what, func() error {
		if l.poll != nil {
			l.poll()
		}
		return wrong()
	})
}
