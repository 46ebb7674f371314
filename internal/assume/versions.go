package assume

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// MaxWait is for how long a cache may lack a written version. A cache that takes longer is disconnected from its API
// server, which final steps allow for, or the store was restored, and the version will never appear.
const MaxWait = time.Minute

// Versions records the version of each object of a kind that this process wrote last, so that a controller does not
// decide on an older version in the cache of its manager. The zero value is ready for use. Its methods are safe for
// concurrent use.
type Versions struct {
	mu      sync.Mutex
	written map[types.NamespacedName]*written
}

// written is the last write of an object.
type written struct {
	version string
	missing time.Time // since when the cache lacks the version; zero: it was not compared yet
}

// Record records a version that was written.
func (v *Versions) Record(object metav1.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.written == nil {
		v.written = map[types.NamespacedName]*written{}
	}
	v.written[nameOf(object)] = &written{version: object.GetResourceVersion()}
}

// Lacks reports whether the written version is newer than that of a cache, for at most [MaxWait].
func (v *Versions) Lacks(cached metav1.Object, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	name := nameOf(cached)
	w := v.written[name]
	if w == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(w.version, cached.GetResourceVersion())
	if err != nil || order <= 0 || !w.missing.IsZero() && now.Sub(w.missing).Abs() >= MaxWait {
		delete(v.written, name)
		return false
	}
	if w.missing.IsZero() {
		w.missing = now
	}
	return true
}

// Forget removes what is recorded of an object.
func (v *Versions) Forget(name types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.written, name)
}
