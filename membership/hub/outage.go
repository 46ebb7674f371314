package hub

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/heartbeat"
)

// Reasons of the Events about outages of the hub. The Events refer to the ConfigMap [membership.HubConfigMap].
const (
	reasonOutageSuspected = "OutageSuspected"
	reasonOutageEnded     = "OutageEnded"
)

// recordOutage returns a function that records an Event about the hub when the outage guard begins to withhold taints
// and failover, and when it stops. The condition Healthy of each member shows whether they are withheld for that
// member.
func recordOutage(recorder events.EventRecorder, namespace string) func(heartbeat.OutageChange) {
	hub := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace,
		Name: membership.HubConfigMap}
	return func(change heartbeat.OutageChange) {
		level, reason, message := outageEvent(change)
		// +event:object=ConfigMap of a hub
		// +event:reason=OutageSuspected, OutageEnded
		// +event:type=Warning if the outage begins, else Normal
		// +event:message=how many members are affected
		recorder.Eventf(hub, nil, level, reason, "Heartbeat", "%s", message)
	}
}

func outageEvent(change heartbeat.OutageChange) (level, reason, message string) {
	members := "members"
	if change.Push {
		members = "members with joinMode Push"
	}
	if change.Suspected {
		return corev1.EventTypeWarning, reasonOutageSuspected, fmt.Sprintf(
			"%d of %d %s are late with their heartbeats or not ready, so the hub itself may be the cause: taints and "+
				"failover of these members are withheld. Check the network of the hub.", change.Affected, change.Tracked,
			members)
	}
	return corev1.EventTypeNormal, reasonOutageEnded, fmt.Sprintf(
		"Enough of the %d members are observed again: each of the %d members that are still late or not ready has a fresh "+
			"grace period.",
		change.Tracked, change.Affected)
}
