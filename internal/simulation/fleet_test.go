package simulation

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestFleet_JoinsPlacesHealsAndLeaves runs a complete hub with three complete agents in virtual time.
func TestFleet_JoinsPlacesHealsAndLeaves(t *testing.T) {
	began := time.Now()
	phase := func(string) {}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &history{writes: map[string]int{}}, 1, 3, mutant{})
		defer w.close()
		phase = func(name string) { t.Logf("%s after %s of virtual time", name, w.h.now()) }
		for _, m := range w.members {
			w.until(m.name+" joins", 10*time.Minute, func() error { return w.joined(m.name) })
		}
		phase("joined")
		w.intent.change(func() {
			for _, m := range w.members {
				w.intent.inFleet[m.name], w.intent.accepted[m.name] = true, true
				w.intent.works[m.name] = map[string]string{"o-hand-0": "1"}
			}
			w.intent.placements["p0"] = placementIntent{}
			w.intent.worksets["w0"] = workSetIntent{"p0", map[string]string{"o-w0-0": "1", "o-w0-1": "1"}}
		})
		w.repair()
		w.until("objects are placed", 5*time.Minute, w.intent.missing)
		phase("placed")
		for _, m := range w.members {
			edited := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: userSpace, Name: "o-w0-0"},
				Data: map[string]string{"version": "edited"}}
			require.NoError(t, m.admin.Update(w.ctx, edited))
		}
		require.Error(t, w.intent.missing())
		w.until("edits are corrected", 20*time.Minute, w.intent.missing)
		phase("corrected")
		w.intent.change(func() {
			for _, m := range w.members {
				w.intent.inFleet[m.name] = false
				delete(w.intent.works, m.name)
			}
		})
		for _, m := range w.members {
			w.remove(&membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}})
		}
		w.until("members leave", 10*time.Minute, func() error {
			var list membershipv1alpha1.MemberClusterList
			require.NoError(t, w.admin.List(w.ctx, &list))
			if len(list.Items) > 0 {
				return fmt.Errorf("%d MemberClusters exist", len(list.Items))
			}
			return nil
		})
		w.until("objects are deleted", time.Minute, w.intent.missing)
		phase("left")
		if problems := w.h.problems(); len(problems) > 0 {
			t.Errorf("%v\n%s", problems, w.h.text())
		}
	})
	t.Logf("took %s", time.Since(began))
}
