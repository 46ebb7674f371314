package celaffinity

import (
	"errors"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-sdk/muster/scheduler"
)

// variable is the name of the variable of all expressions.
const variable = "cluster"

// environment is the CEL environment. It is immutable, and all matchers share it.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	declared := &declared{registry}
	options := []cel.EnvOption{
		cel.CustomTypeAdapter(declared), cel.CustomTypeProvider(declared),
		cel.Variable(variable, clusterType),
		cel.ASTValidators(cel.ValidateRegexLiterals()),
	}
	for _, kind := range []*kind{quantities, versions} {
		options = append(options, kind.functions()...)
	}
	options = append(options, cel.Function("asApproximateFloat",
		cel.MemberOverload("quantity_as_float", []*cel.Type{quantities.is}, cel.DoubleType, cel.UnaryBinding(asFloat))))
	return cel.NewEnv(options...)
})

var (
	clusterType = cel.ObjectType("muster.Cluster")
	taintType   = cel.ObjectType("muster.Taint")
	texts       = cel.MapType(cel.StringType, cel.StringType)
	resources   = cel.MapType(cel.StringType, quantities.is)
)

// fields are the fields of the declared types, by type name and field name.
var fields = map[string]map[string]*types.FieldType{
	clusterType.TypeName(): {
		"name":        fieldOf(cel.StringType, func(c *scheduler.Cluster) any { return c.Name }),
		"labels":      fieldOf(texts, func(c *scheduler.Cluster) any { return c.Labels }),
		"properties":  fieldOf(texts, func(c *scheduler.Cluster) any { return c.Properties }),
		"joined":      fieldOf(cel.BoolType, func(c *scheduler.Cluster) any { return c.Joined }),
		"healthy":     fieldOf(cel.BoolType, func(c *scheduler.Cluster) any { return c.Healthy }),
		"taints":      fieldOf(cel.ListType(taintType), func(c *scheduler.Cluster) any { return c.Taints }),
		"capacity":    fieldOf(resources, func(c *scheduler.Cluster) any { return c.Capacity }),
		"allocatable": fieldOf(resources, func(c *scheduler.Cluster) any { return c.Allocatable }),
		"available":   fieldOf(resources, func(c *scheduler.Cluster) any { return c.Available }),
	},
	taintType.TypeName(): {
		"key":    fieldOf(cel.StringType, func(t *corev1.Taint) any { return t.Key }),
		"value":  fieldOf(cel.StringType, func(t *corev1.Taint) any { return t.Value }),
		"effect": fieldOf(cel.StringType, func(t *corev1.Taint) any { return string(t.Effect) }),
	},
}

func fieldOf[T any](is *cel.Type, of func(T) any) *types.FieldType {
	return &types.FieldType{
		Type:  is,
		IsSet: func(target any) bool { _, is := target.(T); return is },
		GetFrom: func(target any) (any, error) {
			object, is := target.(T)
			if !is {
				return nil, errors.New("no such field")
			}
			return of(object), nil
		},
	}
}

// declared is a registry with the types of this package in addition to those of CEL.
type declared struct{ *types.Registry }

func (d *declared) FindStructType(name string) (*types.Type, bool) {
	switch name {
	case clusterType.TypeName():
		return types.NewTypeTypeWithParam(clusterType), true
	case taintType.TypeName():
		return types.NewTypeTypeWithParam(taintType), true
	}
	return d.Registry.FindStructType(name)
}

func (d *declared) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
	if of, ours := fields[name]; ours {
		found, is := of[fieldName]
		return found, is
	}
	return d.Registry.FindStructFieldType(name, fieldName)
}

// NativeToValue converts Go values to CEL values. CEL calls it for each value of an expression.
func (d *declared) NativeToValue(native any) ref.Val {
	switch v := native.(type) {
	case *scheduler.Cluster:
		return object{v, clusterType}
	case *corev1.Taint:
		return object{v, taintType}
	case []corev1.Taint:
		taints := make([]ref.Val, len(v))
		for i := range v {
			taints[i] = object{&v[i], taintType}
		}
		return types.NewRefValList(d, taints)
	case corev1.ResourceList:
		return types.NewDynamicMap(d, v)
	case resource.Quantity:
		return value{quantities, v}
	}
	return d.Registry.NativeToValue(native)
}
