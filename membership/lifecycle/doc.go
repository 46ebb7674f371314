// Package lifecycle decides what becomes of a member, and does nothing about it.
//
// Three pure functions share the work, and each looks at what one controller has observed:
//
//   - [NextHub] moves a MemberCluster: acceptance, preparation, leave.
//   - [NextDoor] answers a JoinRequest: whose it is, and whether anything is to be issued for it.
//   - [NextAgent] moves the agent on the member: registration, joining, clean-up.
//
// Each returns a step: the phase to show, the conditions to set, the actions to carry out in order, and when
// to look again although nothing has happened. The functions do no I/O, read no clock and keep no state,
// and may be called concurrently. They are level-triggered: correct from any observation, however often they are asked,
// so a controller may die between any two actions and its successor goes on from what it then observes.
//
// # What holds
//
// A test walks every joint state that hub, door, agent and administrators can reach together with
// messages lost, processes restarted, agents dead and deadlines passed, and proves of each:
//
//   - Nobody is Joined who is not accepted.
//   - The agent's access outlives the clean-up of its member, unless the deadline passed or acceptance was withdrawn.
//   - Every leave reaches Left, also when the agent never answers.
//   - Left leaves nothing on the hub, and a member that was told, or finds out, that it is out is clean.
//   - A member is never cleaned up because of an answer that might mean something else: that access is refused
//     proves nothing, so the agent asks at the door whether it was forgotten.
//
// # The hub's machine
//
// [HubDiagram] prints it:
//
// # HUBDIAGRAM
//
// # The agent's machine
//
// [AgentDiagram] prints it:
//
// AGENTDIAGRAM
package lifecycle
