package assume_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/internal/assume"
)

func object(uid types.UID, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: uid,
		ResourceVersion: version}}
}

var name = types.NamespacedName{Namespace: "ns", Name: "a"}

func TestCache_ObserveWriteAndDelete(t *testing.T) {
	type cache = assume.Cache[*corev1.ConfigMap]
	none := (*corev1.ConfigMap)(nil)
	for _, test := range []struct {
		reason string
		do     func(c *cache)
		want   string // UID and version; empty: the object does not exist
		left   int    // the number of entries
	}{
		{"the watch reports an object", func(c *cache) { c.Observe(object("u", "1")) }, "u@1", 1},
		{"versions are numbers", func(c *cache) {
			c.Observe(object("u", "9"))
			c.Observe(object("u", "10"))
		}, "u@10", 1},
		{"the watch is behind a write", func(c *cache) {
			c.Observe(object("u", "1"))
			c.BeginWrite(name)(object("u", "3"))
			c.Observe(object("u", "2"))
		}, "u@3", 1},
		{"the watch is ahead of the response", func(c *cache) {
			end := c.BeginWrite(name)
			c.Observe(object("u", "3"))
			end(object("u", "2"))
		}, "u@3", 1},
		{"a write failed", func(c *cache) { c.BeginWrite(name)(none) }, "", 0},
		{"a write is in progress", func(c *cache) { c.BeginWrite(name) }, "", 1},
		{"the object was deleted before the response to its creation", func(c *cache) {
			end := c.BeginWrite(name)
			c.Observe(object("u", "1"))
			c.ObserveDeletion(object("u", "2"))
			end(object("u", "1"))
		}, "", 0},
		{"the object was deleted before the first of two responses", func(c *cache) {
			first, second := c.BeginWrite(name), c.BeginWrite(name)
			c.Observe(object("u", "1"))
			c.ObserveDeletion(object("u", "4"))
			first(object("u", "2"))
			second(object("u", "3"))
		}, "", 0},
		{"the deletion of an earlier object", func(c *cache) {
			c.Observe(object("v", "3"))
			c.ObserveDeletion(object("u", "2"))
		}, "v@3", 1},
		{"an assumed deletion, and a late event", func(c *cache) {
			c.Observe(object("u", "1"))
			c.AssumeDeletion(object("u", "1"))
			c.Observe(object("u", "2"))
		}, "", 1},
		{"an assumed deletion that the watch reports", func(c *cache) {
			c.Observe(object("u", "1"))
			c.AssumeDeletion(object("u", "1"))
			c.ObserveDeletion(object("u", "2"))
		}, "", 0},
		{"an assumed deletion that the watch had reported", func(c *cache) {
			c.Observe(object("u", "1"))
			c.ObserveDeletion(object("u", "2"))
			c.AssumeDeletion(object("u", "1"))
		}, "", 0},
		{"the watch reports the successor of a deleted object, and not its deletion", func(c *cache) {
			c.Observe(object("u", "1"))
			c.AssumeDeletion(object("u", "1"))
			c.Observe(object("v", "3"))
			c.Observe(object("u", "2"))
			c.ObserveDeletion(object("v", "4"))
		}, "", 0},
		{"an object is created after an assumed deletion", func(c *cache) {
			c.Observe(object("u", "1"))
			c.AssumeDeletion(object("u", "1"))
			c.BeginWrite(name)(object("v", "3"))
			c.ObserveDeletion(object("u", "2"))
		}, "v@3", 1},
		{"a restored version replaces the known one", func(c *cache) {
			c.Observe(object("u", "5"))
			c.Replace(c.Get(name), object("u", "2"))
		}, "u@2", 1},
		{"a restored version is read while a newer one is reported", func(c *cache) {
			c.Observe(object("u", "5"))
			known := c.Get(name)
			c.Observe(object("u", "6"))
			c.Replace(known, object("u", "2"))
		}, "u@6", 1},
		{"of versions that are not numbers, the last one is kept", func(c *cache) {
			c.Observe(object("u", "x"))
			c.Observe(object("u", "b"))
			c.BeginWrite(name)(object("u", "a"))
		}, "u@a", 1},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var c cache
			test.do(&c)
			got := ""
			if o := c.Get(name); o != nil {
				got = string(o.UID) + "@" + o.ResourceVersion
			}
			require.Equal(t, test.want, got)
			require.Equal(t, test.left, c.Len(), "entries")
		})
	}
}

func TestCache_Changes(t *testing.T) {
	var c assume.Cache[*corev1.ConfigMap]
	first, second := object("u", "1"), object("u", "2")
	require.Equal(t, assume.Change[*corev1.ConfigMap]{After: first}, c.Observe(first))
	require.Equal(t, assume.Change[*corev1.ConfigMap]{Before: first, After: second}, c.Observe(second))
	require.False(t, c.Observe(first).Any(), "an older version changes nothing")
	require.Equal(t, assume.Change[*corev1.ConfigMap]{Before: second}, c.ObserveDeletion(object("u", "3")))
	require.False(t, c.ObserveDeletion(object("u", "3")).Any())
}
