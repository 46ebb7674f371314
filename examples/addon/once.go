package main

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

//go:embed addons.yaml
var addons string

// once runs each step of the lifecycle of the add-ons once.
func (f *fleet) once(ctx context.Context) error {
	began := time.Now()
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"install both add-ons on all members", f.install},
		{"configure the collector: everywhere, on west alone, and in a way that cannot be", f.configure},
		{"release version 2.0-rc1, whose health is bad", f.releaseBad},
		{"release version 2.0", f.releaseGood},
		{"remove one add-on, and then the other", f.remove},
	}
	for i, step := range steps {
		start := time.Now()
		say("[%d/%d] %s", i+1, len(steps), step.name)
		if err := step.do(ctx); err != nil {
			_ = f.show(ctx, "addons", "memberaddons -A") // the state at the failure
			return fmt.Errorf("step %q failed after %s: %w", step.name, time.Since(start).Round(time.Millisecond), err)
		}
		say("      done in %s", time.Since(start).Round(time.Millisecond))
	}
	say("All went well, in %s.", time.Since(began).Round(time.Millisecond))
	return nil
}

// live installs the add-ons and waits until the user ends the program.
func (f *fleet) live(ctx context.Context) error {
	if err := f.install(ctx); err != nil {
		return err
	}
	say("Try in another terminal, with KUBECONFIG=%s:", f.planes["hub"].Kubeconfig())
	say("  kubectl get addons,memberaddons -A -o wide")
	say("  kubectl -n platform edit addonconfig backend")
	say("  kubectl delete addon collector")
	say("\nCtrl-C ends it.")
	<-ctx.Done()
	return nil
}

// install creates the objects of addons.yaml, and waits until all members have both add-ons.
func (f *fleet) install(ctx context.Context) error {
	for text := range strings.SplitSeq(addons, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), object); err != nil {
			return fmt.Errorf("read addons.yaml: %w", err)
		}
		if err := f.hub.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if err := f.untilWell(ctx, "collector", "motd"); err != nil {
		return err
	}
	return f.show(ctx, "addons", "memberaddons -A")
}

// configure changes the configuration of all members, and then of one. An invalid configuration reaches no member.
func (f *fleet) configure(ctx context.Context) error {
	rules := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "rules"}}
	if err := f.patch(ctx, rules, func() { rules.Data["rules"] = "pods,nodes" }); err != nil {
		return err
	}
	own := &v1alpha1.AddonConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "west"}}
	own.Spec.Variables = []v1alpha1.Variable{{Name: "ENDPOINT", Value: "logs.west.example.com"}}
	if err := f.hub.Create(ctx, own); err != nil {
		return fmt.Errorf("create AddonConfig %s: %w", own.Name, err)
	}
	west := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "member-west", Name: "collector"}}
	err := f.patch(ctx, west, func() {
		west.Spec.Configs = []v1alpha1.ConfigReference{{
			Group: v1alpha1.GroupName, Resource: "addonconfigs", ObjectName: v1alpha1.ObjectName{Namespace: "platform",
				Name: "west"},
		}}
	})
	if err != nil {
		return err
	}
	want := map[string]string{"east": "logs.example.com", "north": "logs.example.com", "west": "logs.west.example.com"}
	for _, name := range names {
		err := until(ctx, name+" to be configured", func(ctx context.Context) (bool, string) {
			has := &corev1.ConfigMap{}
			err := f.members[name].Get(ctx, client.ObjectKey{Namespace: "muster-addons", Name: "collector"}, has)
			return err == nil && has.Data["rules"] == "pods,nodes" && has.Data["endpoint"] == want[name],
				fmt.Sprintf("it has %v (%v)", has.Data, err)
		})
		if err != nil {
			return err
		}
		say("      %s collects pods,nodes and sends to %s", name, want[name])
	}
	if err := f.untilWell(ctx, "collector"); err != nil {
		return err
	}
	if err := f.patch(ctx, rules, func() { rules.Data = nil }); err != nil {
		return err
	}
	err = f.until(ctx, "collector", "its configuration to be refused", func(a *v1alpha1.Addon) bool {
		return a.Status.Counts.Degraded == 3
	})
	if err != nil {
		return err
	}
	if err := f.show(ctx, "addons", "memberaddons -A"); err != nil {
		return err
	}
	if err := f.patch(ctx, rules, func() { rules.Data = map[string]string{"rules": "pods,nodes"} }); err != nil {
		return err
	}
	return f.untilWell(ctx, "collector")
}

// releaseBad replaces the hub by a release with a bad collector. The rollout halts after one member.
func (f *fleet) releaseBad(ctx context.Context) error {
	f.release("2.0-rc1")
	err := f.until(ctx, "collector", "the rollout to halt", func(a *v1alpha1.Addon) bool {
		return len(a.Status.Placements) == 1 && a.Status.Placements[0].Rollout.Phase == placementv1alpha1.PhaseFailed
	})
	if err != nil {
		return err
	}
	if has, err := f.versions(ctx); err != nil || !slices.Equal(has, []string{"2.0-rc1", "1.0", "1.0"}) {
		return fmt.Errorf("the members have versions %v (%w)", has, err)
	}
	return f.show(ctx, "addons", "memberaddons -A")
}

// releaseGood replaces the hub by a release with a good collector, which all members receive.
func (f *fleet) releaseGood(ctx context.Context) error {
	f.release("2.0")
	err := until(ctx, "version 2.0 on all members", func(ctx context.Context) (bool, string) {
		has, err := f.versions(ctx)
		return slices.Equal(has, []string{"2.0", "2.0", "2.0"}), fmt.Sprint(has, err)
	})
	if err != nil {
		return err
	}
	if err := f.untilWell(ctx, "collector", "motd"); err != nil {
		return err
	}
	return f.show(ctx, "addons", "memberaddons -A")
}

// versions returns the versions of the collector on the members, in the order of names.
func (f *fleet) versions(ctx context.Context) (has []string, _ error) {
	for _, name := range names {
		version, err := f.version(ctx, name)
		if err != nil {
			return nil, err
		}
		has = append(has, version)
	}
	return has, nil
}

// remove deletes one Addon after the other. An Addon is deleted after all members have removed the add-on. The removal
// does not affect the other add-on.
func (f *fleet) remove(ctx context.Context) error {
	if err := f.delete(ctx, "motd"); err != nil {
		return err
	}
	if err := f.untilGone(ctx, "motd"); err != nil {
		return err
	}
	for _, name := range names {
		namespace := &corev1.Namespace{}
		err := f.members[name].Get(ctx, client.ObjectKey{Name: "muster-addons"}, namespace)
		if err != nil || namespace.DeletionTimestamp != nil {
			return fmt.Errorf("the namespace of both add-ons is gone from %s with one of them (%w)", name, err)
		}
	}
	if err := f.delete(ctx, "collector"); err != nil {
		return err
	}
	for _, name := range names {
		err := until(ctx, name+" to send what is left", func(ctx context.Context) (bool, string) {
			flush := &batchv1.Job{}
			err := f.members[name].Get(ctx, client.ObjectKey{Namespace: "muster-addons", Name: "collector-flush"}, flush)
			return err == nil, fmt.Sprint(err)
		})
		if err != nil {
			return err
		}
	}
	if err := f.show(ctx, "memberaddons -A"); err != nil {
		return err
	}
	if err := f.untilGone(ctx, "collector"); err != nil {
		return err
	}
	for _, name := range names {
		err := until(ctx, name+" to be clean", func(ctx context.Context) (bool, string) {
			namespace := &corev1.Namespace{}
			err := f.members[name].Get(ctx, client.ObjectKey{Name: "muster-addons"}, namespace)
			return apierrors.IsNotFound(err), fmt.Sprintf("namespace muster-addons is %s (%v)", namespace.Status.Phase, err)
		})
		if err != nil {
			return err
		}
	}
	return f.show(ctx, "addons", "memberaddons -A")
}

func (f *fleet) delete(ctx context.Context, name string) error {
	if err := f.hub.Delete(ctx, &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return fmt.Errorf("delete Addon %s: %w", name, err)
	}
	return nil
}

func (f *fleet) untilGone(ctx context.Context, name string) error {
	return until(ctx, "Addon "+name+" to be gone", func(ctx context.Context) (bool, string) {
		a := &v1alpha1.Addon{}
		err := f.hub.Get(ctx, client.ObjectKey{Name: name}, a)
		return apierrors.IsNotFound(err), fmt.Sprintf("%s (%v)", a.Status.Message, err)
	})
}

// patch changes an object on the hub.
func (f *fleet) patch(ctx context.Context, object client.Object, change func()) error {
	if err := f.hub.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return fmt.Errorf("read %T %s: %w", object, object.GetName(), err)
	}
	before := object.DeepCopyObject().(client.Object)
	change()
	if err := f.hub.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

// untilWell waits until the add-ons are installed and available on all members.
func (f *fleet) untilWell(ctx context.Context, which ...string) error {
	for _, name := range which {
		err := f.until(ctx, name, "it to be well on all members", func(a *v1alpha1.Addon) bool {
			return meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionInstalled) &&
				int(a.Status.Counts.Available) == len(names)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// until waits until is returns true for an Addon.
func (f *fleet) until(ctx context.Context, name, what string, is func(*v1alpha1.Addon) bool) error {
	return until(ctx, what, func(ctx context.Context) (bool, string) {
		a := &v1alpha1.Addon{}
		err := f.hub.Get(ctx, client.ObjectKey{Name: name}, a)
		return err == nil && is(a), fmt.Sprintf("Addon %s: %s (%v)", name, a.Status.Message, err)
	})
}
