package workset

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestOwner_ClaimsAny checks which Works a WorkSet may delete on a cluster that is not chosen: its own, but not those
// of an earlier WorkSet with its name that exist after a restore.
func TestOwner_ClaimsAny(t *testing.T) {
	at := func(seconds int64) metav1.Time { return metav1.Time{Time: time.Unix(seconds, 0)} }
	work := func(uid string, created int64) *record {
		r := &record{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(created)}}
		if uid != "" {
			r.Annotations = map[string]string{v1alpha1.WorkSetUIDAnnotation: uid}
		}
		return r
	}
	current := owner{uid: "now", created: at(5)}
	for _, test := range []struct {
		reason string
		works  []*record
		want   bool
	}{
		{"no Works", nil, true},
		{"a Work of the current WorkSet", []*record{work("now", 1)}, true},
		{"one Work names the owner for all", []*record{work("", 1), work("now", 1), work("", 1)}, true},
		{"Works of an earlier WorkSet", []*record{work("before", 9), work("", 9)}, false},
		{"Works of an earlier release, created before the WorkSet", []*record{work("", 4), work("", 4)}, false},
		{"Works of an earlier release, created after the WorkSet", []*record{work("", 5), work("", 6)}, true},
	} {
		require.Equal(t, test.want, current.claimsAny(existing{records: test.works}), test.reason)
	}
}
