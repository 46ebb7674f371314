package propertysorter

import (
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// none is the number of clusters that have none. It equals itself, as NaN does not, so that a column of it can tell
// whether anything has changed.
const none = -math.MaxFloat64

// farthest is the greatest number, and its negative the least: beyond, they cannot be subtracted from each other any
// more.
const farthest = 1e300

// numberOf returns how to find the number that a sorter names.
func numberOf(name string) func(*scheduler.Cluster) float64 {
	list, resourceName, _ := strings.Cut(name, "/")
	var lists func(*scheduler.Cluster) corev1.ResourceList
	switch list {
	case "capacity":
		lists = func(c *scheduler.Cluster) corev1.ResourceList { return c.Capacity }
	case "allocatable":
		lists = func(c *scheduler.Cluster) corev1.ResourceList { return c.Allocatable }
	case "available":
		lists = func(c *scheduler.Cluster) corev1.ResourceList { return c.Available }
	}
	if lists == nil || resourceName == "" {
		return func(c *scheduler.Cluster) float64 {
			value, has := c.Properties[name]
			if !has {
				return none
			}
			quantity, err := v1alpha1.ParseQuantity(value)
			if err != nil {
				return none
			}
			return number(quantity)
		}
	}
	return func(c *scheduler.Cluster) float64 {
		quantity, has := lists(c)[corev1.ResourceName(resourceName)]
		if !has {
			return none
		}
		return number(quantity)
	}
}

// number returns the number that is nearest to a quantity. So it never turns the order of two quantities around, and
// gives those that are equal the same number, which AsApproximateFloat64 does not: 300m is not 0.3 to it.
func number(quantity resource.Quantity) float64 {
	if whole, exact := quantity.AsInt64(); exact {
		return float64(whole)
	}
	dec := quantity.AsDec() // of our own copy, which it changes
	text := dec.UnscaledBig().String() + "e" + strconv.FormatInt(-int64(dec.Scale()), 10)
	nearest, _ := strconv.ParseFloat(text, 64) // what is out of range is infinite
	return min(max(nearest, -farthest), farthest)
}
