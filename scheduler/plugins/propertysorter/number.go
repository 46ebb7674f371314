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

// none is the value of clusters without a number. Unlike NaN it equals itself, so that a column can detect changes.
const none = -math.MaxFloat64

// farthest is the maximum number, and -farthest the minimum. The difference of two numbers in this range does not
// overflow.
const farthest = 1e300

// numberOf returns a function that returns the number of a cluster for the name in a sorter.
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

// number converts a quantity to the nearest floating-point number. It preserves the order of quantities, and equal
// quantities get equal numbers. AsApproximateFloat64 does not have this property: it does not convert 300m to 0.3.
func number(quantity resource.Quantity) float64 {
	if whole, exact := quantity.AsInt64(); exact {
		return float64(whole)
	}
	dec := quantity.AsDec() // AsDec changes its receiver, which is a copy
	text := dec.UnscaledBig().String() + "e" + strconv.FormatInt(-int64(dec.Scale()), 10)
	nearest, _ := strconv.ParseFloat(text, 64) // the result is infinite if the number is out of range
	return min(max(nearest, -farthest), farthest)
}
