/**
 * The protocol of vaala, version 1.0: JSON-RPC 2.0, one message per text frame.
 *
 * Generated from the Python types; `python -m vaala_protocol.schema` writes it anew. A field with a
 * `?` is left out at its default: null, empty, 0 or false where none is told. Times are
 * milliseconds since 1970, UTC. A newer server of the same major version may send more fields,
 * kinds of items and types of events: skip what you do not know.
 */

export interface TextContent {
  type: "text";
  text: string;
}

/** An image kept as a blob of its conversation. */
export interface ImageContent {
  type: "image";
  blob: string;
  mediaType: string;
  sizeBytes: number;
}

/** A file that came with a message, kept as a blob of its conversation. */
export interface FileContent {
  type: "file";
  name: string;
  blob: string;
  mediaType: string;
  sizeBytes: number;
}

export type Content = TextContent | ImageContent | FileContent;

export interface CommandDetails {
  type: "command";
  command: string;
  cwd: string;
  /** Default: "local" */
  executor?: string;
  /** Names the process while it runs and after; null before it started. */
  commandId?: string | null;
  background?: boolean;
  exitCode?: number | null;
  signal?: number | null;
  timedOut?: boolean;
  outputBytes?: number | null;
  omittedBytes?: number | null;
  /** The blob with the whole output, when what the item shows was cut. */
  outputBlob?: string | null;
}

export interface FileChange {
  path: string;
  change: "create" | "edit" | "delete" | "move";
  /** Unified diff, once made; cut at the limit for diffs. */
  diff?: string | null;
  movedTo?: string | null;
}

export interface FileChangeDetails {
  type: "file_change";
  changes: FileChange[];
  /** Default: "local" */
  executor?: string;
}

export interface ReadDetails {
  type: "read";
  path: string;
  /** Default: "local" */
  executor?: string;
}

export interface SearchDetails {
  type: "search";
  query: string;
  path: string;
  /** Default: "local" */
  executor?: string;
  matches?: number | null;
}

export interface FetchDetails {
  type: "fetch";
  url: string;
  status?: number | null;
}

export interface McpDetails {
  type: "mcp";
  server: string;
  tool: string;
}

export interface AgentDetails {
  type: "agent";
  action: "spawn" | "wait" | "send" | "close";
  task?: string;
  sessionId?: string | null;
}

export interface OtherDetails {
  type: "other";
  title: string;
}

export type CallDetails =
  | CommandDetails
  | FileChangeDetails
  | ReadDetails
  | SearchDetails
  | FetchDetails
  | McpDetails
  | AgentDetails
  | OtherDetails;

export type CallState =
  | "waiting"
  | "running"
  | "done"
  | "error"
  | "denied"
  | "cancelled"
  | "unknown";

export type Mode = "read-only" | "ask" | "auto-edit" | "full";

export type StopReason =
  | "end_turn"
  | "max_tokens"
  | "max_steps"
  | "budget"
  | "loop"
  | "refusal"
  | "interrupted"
  | "failed";

export type ErrorKind =
  | "auth"
  | "billing"
  | "rate_limit"
  | "overloaded"
  | "context_overflow"
  | "invalid_request"
  | "refused"
  | "network"
  | "incomplete"
  | "invalid_output"
  | "storage"
  | "bug";

/** What a session runs with; null means "not set here, look one level up". */
export interface Settings {
  model?: string | null;
  /** How hard the model should think; `default`: as it does by itself. */
  effort?: string | null;
  mode?: Mode | null;
  /**
   * Fields of the request to the model, by the provider's names; `max_output_tokens` is known
   * to all. Null takes away what is set one level up.
   */
  options?: Record<string, unknown>;
}

/** Tokens in disjoint classes: their sum is what was processed. */
export interface Usage {
  input?: number;
  cacheRead?: number;
  cacheWrite?: number;
  output?: number;
  reasoning?: number;
}

export type Feature = "tools" | "images" | "reasoning";

export type FactSource = "config" | "server" | "catalogue";

/** What every token of a call costs whose prompt is long. What is left out is not known. */
export interface LongPrices {
  /** A prompt with more than this is long; what is read from and written to caches counts. */
  aboveTokens: number;
  input?: string | null;
  cacheRead?: string | null;
  cacheWrite?: string | null;
  output?: string | null;
}

/**
 * US dollars for a million tokens, by class; reasoning costs what output does.
 *
 * What is left out is not known. `until`: the last day, in UTC, that they hold for.
 */
export interface ModelPrices {
  input?: string | null;
  cacheRead?: string | null;
  cacheWrite?: string | null;
  output?: string | null;
  long?: LongPrices | null;
  until?: string | null;
}

/** Where the catalogue has the figures of a model from. */
export interface CatalogueSource {
  url: string;
  /** The day that they are of, as in `2026-11-10`. */
  asOf: string;
}

export interface Cost {
  /** A decimal number, as in `0.0421`. */
  usd: string;
  /** The price of some of the tokens is not known: it was more. */
  atLeast?: boolean;
}

/** What every item has. */
export interface ItemBase {
  id: string;
  /** Its place in the session: items are shown in this order. */
  at: number;
  /** Milliseconds since the epoch, UTC. */
  createdAt: number;
  sessionId?: string;
  turnId?: string | null;
  /** The number of the step in its turn, from 1; null for what belongs to no step. */
  step?: number | null;
  completedAt?: number | null;
  /**
   * Counts the item's logged entries; of two versions the higher one is right.
   * Default: 1
   */
  rev?: number;
}

/** What a person said; it was an input before. */
export interface UserMessage extends ItemBase {
  kind: "user_message";
  content: Content[];
  inputId?: string | null;
  clientId?: string | null;
}

/** What the model said. */
export interface AssistantMessage extends ItemBase {
  kind: "assistant_message";
  text?: string;
  /** The stream ended before the message did. */
  partial?: boolean;
}

/** From another agent: a child's result, or a message between sessions. */
export interface PeerMessage extends ItemBase {
  kind: "peer_message";
  fromSession: string;
  content: Content[];
  /** For a child's result: how its turn ended. */
  turnState?: string | null;
  inputId?: string | null;
}

/** What the model thought, as far as its provider shows it. */
export interface Reasoning extends ItemBase {
  kind: "reasoning";
  text?: string;
  partial?: boolean;
}

/** A call of a tool: what it asks for, whether it may run, how it ended. */
export interface ToolCall extends ItemBase {
  kind: "tool_call";
  name: string;
  /** The arguments as the model wrote them. */
  arguments: string;
  details: CallDetails;
  /** Default: "waiting" */
  state?: CallState;
  title?: string;
  result?: Content[];
  startedAt?: number | null;
  /** The client that ran the tool, ran the command, or read or wrote the file; null: no client. */
  servedBy?: string | null;
  /** Why it was denied, cancelled or is unknown; one line for people. */
  reason?: string | null;
}

/** A call of the model failed; it is tried again, or the turn ends. */
export interface ModelError extends ItemBase {
  kind: "model_error";
  error: ErrorKind;
  message: string;
  /** Default: 1 */
  attempt?: number;
  /** null when this failure ended the turn. */
  retryInMs?: number | null;
}

/** From here on requests hold less of what came before; the transcript stays whole. */
export interface ContextChange extends ItemBase {
  /** Items with a place up to this one are left out of requests. */
  covers: number;
  /**
   * Places of items that stay, though they are covered: what was asked for, rules, the plan, and
   * what still runs. They stand first.
   */
  keeps?: number[];
  /** What stays of the text of each of them, head and tail; 0: all. */
  keptBytes?: number;
  /** The size of the next request without the change, as it was estimated. */
  tokensBefore?: number;
  tokensAfter?: number;
}

/** Stands in requests for the items that it covers; written by the session's model. */
export interface ContextSummary extends ContextChange {
  kind: "context_summary";
  text: string;
  model?: string;
  /** What the model used for it; it counts in its turn. */
  usage?: Usage;
}

/** Items are left out of requests without a summary, or results of calls are shortened. */
export interface ContextCut extends ContextChange {
  kind: "context_cut";
  reason?: string;
  /**
   * Results of calls with a place up to this one are shortened to head and tail; 0: none. The
   * whole of such a result is in the blob that has the id of its call as its key.
   */
  shortens?: number;
  /** What stays of each of these results. */
  resultBytes?: number;
}

/** The settings were changed here. */
export interface SettingsChange extends ItemBase {
  kind: "settings_change";
  /** The settings in force from here on, whole. */
  settings: Settings;
}

/** The session works in another place from here on. */
export interface ExecutorChange extends ItemBase {
  kind: "executor_change";
  executor: string;
  directory: string;
}

/** A skill that was given to the model. */
export interface Skill extends ItemBase {
  kind: "skill";
  name: string;
  text: string;
}

/** Rules that were given to the model from a file. */
export interface Instructions extends ItemBase {
  kind: "instructions";
  source: string;
  text: string;
}

/** A hook ran, and what came of it. */
export interface HookRun extends ItemBase {
  kind: "hook_run";
  hook: string;
  event: string;
  outcome: string;
  output?: string;
}

export interface ApprovalOption {
  id: string;
  kind: "allow_once" | "allow_always" | "reject_once" | "reject_always";
  label: string;
  /** Default: "call" */
  scope?: "call" | "session" | "config";
  /** What is remembered when the scope is wider than the call. */
  rule?: string | null;
}

export interface ApprovalAnswer {
  option: string;
  by: string;
  reason?: string;
  interrupt?: boolean;
}

/** A decision that a call waits for; answered by id, the first answer wins. */
export interface Approval extends ItemBase {
  kind: "approval";
  toolCallId: string;
  /** SHA-256 of tool name and arguments: the exact call that is approved. */
  digest: string;
  options: ApprovalOption[];
  reason?: string;
  /** Default: "pending" */
  state?: "pending" | "answered" | "withdrawn" | "expired";
  answer?: ApprovalAnswer | null;
}

/** A question of the agent to a person; answered by id, the first answer wins. */
export interface Question extends ItemBase {
  kind: "question";
  /** The call that asks. */
  toolCallId?: string | null;
  text: string;
  choices?: string[];
  /** Default: "pending" */
  state?: "pending" | "answered" | "withdrawn" | "expired";
  answer?: string | null;
  answeredBy?: string | null;
}

/** One line from the runtime to the person; never sent to the model. */
export interface Notice extends ItemBase {
  kind: "notice";
  level: "info" | "warning" | "error";
  text: string;
  /** What it is about, for programs; `request_cut`: a server seems to have cut a request. */
  code?: string;
}

/** The turn was ended before it was done. */
export interface Interruption extends ItemBase {
  kind: "interruption";
  by: "user" | "shutdown" | "crash" | "budget";
  reason?: string;
}

export interface PlanStep {
  text: string;
  /** Default: "pending" */
  state?: "pending" | "in_progress" | "completed";
}

/** What the agent plans to do, and how far it is; the newest one counts. */
export interface Plan extends ItemBase {
  kind: "plan";
  steps: PlanStep[];
}

/** A background command ended; the call that started it is closed long since. */
export interface CommandEnd extends ItemBase {
  kind: "command_end";
  commandId: string;
  toolCallId: string;
  command: string;
  exitCode?: number | null;
  signal?: number | null;
  /** The runtime ended while the command ran. */
  lost?: boolean;
  output?: string;
  inputId?: string | null;
}

/** An item of a kind that this version does not know: kept whole, shown by its kind. */
export interface UnknownItem extends ItemBase {
  kind: "unknown";
  unknownKind: string;
  fields: Record<string, unknown>;
}

export type Item =
  | UserMessage
  | AssistantMessage
  | PeerMessage
  | Reasoning
  | ToolCall
  | ModelError
  | ContextSummary
  | ContextCut
  | SettingsChange
  | ExecutorChange
  | Skill
  | Instructions
  | HookRun
  | Approval
  | Question
  | Notice
  | Interruption
  | Plan
  | CommandEnd
  | UnknownItem;

export type ConversationStatus =
  | "idle"
  | "running"
  | "waitingApproval"
  | "waitingAnswer"
  | "failed";

export type TurnState = "running" | "completed" | "failed" | "interrupted";

export type Delivery = "queue" | "steer";

export type InputState = "waiting" | "held" | "consumed" | "withdrawn";

/** Where a conversation works: a directory on an executor. */
export interface Location {
  executor: string;
  directory: string;
  additional?: string[];
}

export interface ConversationInfo {
  id: string;
  createdAt: number;
  updatedAt: number;
  title?: string;
  locations?: Location[];
  tags?: string[];
  archived?: boolean;
  forkParent?: string | null;
  /** Default: "idle" */
  status?: ConversationStatus;
  ephemeral?: boolean;
}

export interface SessionInfo {
  id: string;
  agent: string;
  createdAt: number;
  settings: Settings;
  parent?: string | null;
  /** The parent's turn that spawned it. */
  spawnedBy?: string | null;
}

/** One model call and its tool calls. */
export interface StepInfo {
  turnId: string;
  number: number;
  model: string;
  startedAt: number;
  firstByteAt?: number | null;
  answeredAt?: number | null;
  endedAt?: number | null;
  /** The finish reason as our word for it; see `vaala.models`. */
  finish?: string | null;
  usage?: Usage;
}

export interface TurnInfo {
  id: string;
  state: TurnState;
  startedAt: number;
  settings: Settings;
  /** The run of the runtime that ran it. */
  instance: string;
  endedAt?: number | null;
  stopReason?: StopReason | null;
  interruptedBy?: "user" | "shutdown" | "crash" | "budget" | null;
  /** One line that tells the user why it stopped; empty for end_turn. */
  message?: string;
  steps?: number;
  /** By model. */
  usage?: Record<string, Usage>;
}

/** How a turn ended, and what the agent said last. */
export interface TurnResult {
  turn: TurnInfo;
  text: string;
}

export interface CommandEnded {
  type: "command_ended";
  commandId: string;
  toolCallId: string;
  command: string;
  exitCode?: number | null;
  signal?: number | null;
  lost?: boolean;
  output?: string;
}

export interface PeerInput {
  type: "peer";
  fromSession: string;
  content: Content[];
  /** The turn or message at the sender that this came from; a repeat is dropped. */
  cause: string;
  turnState?: string | null;
}

export interface UserInput {
  type: "user";
  content: Content[];
}

export type InputSource = UserInput | CommandEnded | PeerInput;

/** Pending input: accepted and durable, not yet part of the history. */
export interface InputInfo {
  id: string;
  clientId: string;
  source: InputSource;
  createdAt: number;
  /** Default: "queue" */
  delivery?: Delivery;
  /** Default: "waiting" */
  state?: InputState;
  /** Order in the queue, lowest first. */
  place?: number;
  /** Overrides for the turn that it starts. */
  settings?: Settings | null;
  /** The JSON Schema that the last answer of its turn has to match. */
  outputSchema?: Record<string, unknown> | null;
}

/** A command that runs in the background of a session. */
export interface CommandInfo {
  id: string;
  sessionId: string;
  toolCallId: string;
  command: string;
  cwd: string;
  startedAt: number;
  /** Default: "local" */
  executor?: string;
  outputBytes?: number;
}

/** What something waits for, for people: "model: first byte", "pytest: 40 s, 3.2 MB". */
export interface Wait {
  subject: string;
  reason: string;
  since: number;
  /** null: until interrupted. */
  deadlineAt?: number | null;
}

/** An item that is still being made: its text so far and the index of its next delta. */
export interface LivePart {
  item: Item;
  field: "text" | "arguments" | "output";
  text: string;
  nextIndex: number;
}

export interface SessionSnapshot {
  info: SessionInfo;
  settings: Settings;
  /** The newest ones, in order of `at`. */
  items: Item[];
  turn?: TurnInfo | null;
  live?: LivePart[];
  queue?: InputInfo[];
  commands?: CommandInfo[];
  waits?: Wait[];
  /** Why the newest changes are not on disk yet; null when they are. */
  unsaved?: string | null;
}

/** A conversation at one moment; events with a higher `seq` of the same epoch follow it. */
export interface Snapshot {
  epoch: string;
  seq: number;
  conversation: ConversationInfo;
  sessions: SessionSnapshot[];
  meta?: Record<string, unknown>;
}

/** All calls of one model, those that failed included. */
export interface ModelUsage {
  model: string;
  usage: Usage;
  /** null: no price is known. */
  cost?: Cost | null;
}

export interface Spent {
  usage?: Usage;
  /** null: no price is known of any model. Where one is missing, `atLeast` says so. */
  cost?: Cost | null;
  models?: ModelUsage[];
}

export interface TurnSpent {
  id: string;
  sessionId: string;
  state: TurnState;
  startedAt: number;
  spent: Spent;
}

/**
 * How full the context was in the newest call that was answered. It is no sum: every call of a
 * turn is paid for, and each has the whole context again.
 */
export interface ContextFill {
  model: string;
  tokens: number;
  /** null: not known. */
  window?: number | null;
}

export interface SessionSpent {
  id: string;
  spent: Spent;
  context?: ContextFill | null;
}

/**
 * Turns that had ended before the conversation was made, as in a fork or an import, are left
 * out: they were paid for where they ran.
 */
export interface ConversationSpent {
  id: string;
  title?: string;
  updatedAt?: number;
  turns?: number;
  spent?: Spent;
  sessions?: SessionSpent[];
  /** The newest turns, newest first. */
  newest?: TurnSpent[];
}

/** Conversations in which something was used, newest first, without their sessions and turns. */
export interface UsagePage {
  conversations: ConversationSpent[];
  cursor?: string | null;
}

/** Its title, status, place or tags are others now; it comes whole. */
export interface ConversationChanged {
  type: "conversation/changed";
  conversation: ConversationInfo;
}

/** A session is new, or open again: all of it, nothing needs to be known before. */
export interface SessionOpened {
  type: "session/opened";
  session: SessionSnapshot;
}

/** A session has ended; its transcript can still be read. */
export interface SessionClosed {
  type: "session/closed";
  sessionId: string;
  reason?: string;
}

/** The settings in force from here on, whole. */
export interface SettingsChanged {
  type: "session/settings";
  sessionId: string;
  settings: Settings;
}

/** A turn began, went on or ended; it comes whole. */
export interface TurnChanged {
  type: "turn/changed";
  sessionId: string;
  turn: TurnInfo;
}

/** A step of the running turn began, was answered or ended; it comes whole. */
export interface StepChanged {
  type: "step/changed";
  sessionId: string;
  step: StepInfo;
}

/**
 * A message waits, was changed, moved, taken or withdrawn; it comes whole.
 *
 * Consumed and withdrawn ones are not in the queue any more.
 */
export interface InputChanged {
  type: "input/changed";
  sessionId: string;
  input: InputInfo;
}

/** An item appeared or changed; it comes whole. `live`: not on disk yet, deltas follow. */
export interface ItemChanged {
  type: "item/changed";
  item: Item;
  live?: boolean;
}

/** More of a live item. `index` counts the characters of the field before this text. */
export interface ItemDelta {
  type: "item/delta";
  sessionId: string;
  itemId: string;
  field: "text" | "arguments" | "output";
  index: number;
  text: string;
}

/** A live item is void: the call that made it is tried again. */
export interface ItemDropped {
  type: "item/dropped";
  sessionId: string;
  itemId: string;
}

/** A background command began, or has ended: then it is in no list any more. */
export interface CommandChanged {
  type: "command/changed";
  command: CommandInfo;
  ended?: boolean;
}

/** Output of a background command; `index` counts the bytes of output before it. */
export interface CommandOutput {
  type: "command/output";
  sessionId: string;
  commandId: string;
  index: number;
  text: string;
}

/** All that the session waits for now. */
export interface WaitsChanged {
  type: "session/waits";
  sessionId: string;
  waits: Wait[];
}

/** The newest changes are not on disk yet; `reason` null: they are again. */
export interface Unsaved {
  type: "session/unsaved";
  sessionId: string;
  reason?: string | null;
}

export type Event =
  | ConversationChanged
  | SessionOpened
  | SessionClosed
  | SettingsChanged
  | TurnChanged
  | StepChanged
  | InputChanged
  | ItemChanged
  | ItemDelta
  | ItemDropped
  | CommandChanged
  | CommandOutput
  | WaitsChanged
  | Unsaved;

/** One numbered event; a coalesced one covers the numbers `first` to `seq`. */
export interface Frame {
  epoch: string;
  first: number;
  seq: number;
  event: Event;
}

/** Entries `first` to `last` of a stream that cannot be read (null: not known). */
export interface Gap {
  first?: number | null;
  last?: number | null;
  detail: string;
}

/** Items in order of `at`, oldest first. */
export interface ItemPage {
  items: Item[];
  /** There are items before the first of the page. */
  earlier: boolean;
  /** There are logged items after the last of the page. */
  later: boolean;
  damage?: Gap[];
}

/** Which conversations, in which order. null: does not matter. */
export interface ListQuery {
  /**
   * `created` goes by id: when the conversation began in this data directory.
   * Default: "updated"
   */
  order?: "updated" | "created";
  /** Default: true */
  newestFirst?: boolean;
  archived?: boolean | null;
  tag?: string | null;
  /** The directory of the first location. */
  directory?: string | null;
  status?: ConversationStatus | null;
}

/** A conversation as lists show it. */
export interface ConversationRow {
  info: ConversationInfo;
  sessions?: number;
  turns?: number;
  items?: number;
  /** How the last message begins. */
  snippet?: string;
}

export interface ConversationPage {
  rows: ConversationRow[];
  /** Pass it with the same query to get the next page; null: this was the last. */
  cursor?: string | null;
  /**
   * False while the index is being rebuilt or cannot be written, on a full disk, say:
   * conversations may be missing, or shown as they were.
   * Default: true
   */
  complete?: boolean;
}

export interface SearchResult {
  conversation: ConversationInfo;
  /** The message that matched; null: the title did. */
  itemId?: string | null;
  snippet?: string;
}

export interface SearchPage {
  results: SearchResult[];
  cursor?: string | null;
  /** Default: true */
  complete?: boolean;
}

/** The answer of a method that has nothing to tell but that it was done. */
export type Done = Record<string, never>;

export interface ClientInfo {
  name: string;
  version: string;
  /** The version of vaala's own client library; empty for every other client. */
  library?: string;
}

/** What a client on the same machine runs in; kept in the server's memory alone. */
export interface ClientEnvironment {
  /** The client's working directory. */
  directory: string;
  /** Variables of model providers. Below the configuration; commands never see them. */
  keys?: Record<string, string>;
  /** Variables for local commands, such as PATH; null: not set. */
  overlay?: Record<string, string | null>;
}

export interface ServerInfo {
  version: string;
  protocol: string;
  /** Names this run of the server. */
  instance: string;
  pid: number;
  dataDirectory: string;
  startedAt: number;
  /** A client started it; it ends by itself when it is idle for long. */
  autoStarted?: boolean;
}

/** Variables that the configuration of the server names besides those that are always told. */
export interface WantedVariables {
  /** For `ClientEnvironment.keys`. */
  keys?: string[];
  /** For `ClientEnvironment.overlay`. */
  forward?: string[];
}

export interface InitializeResult {
  server: ServerInfo;
  /** What a client on the same machine tells by `client/environment` where it has any of it. */
  wanted?: WantedVariables;
  /** Lines for the person: an upgrade that waits, a configuration that cannot be loaded. */
  notices?: string[];
}

/**
 * Say who the client is and which protocol it speaks; the first request of a connection.
 *
 * Refused as `incompatible` when the major versions differ. Refused as `outdated` by a server
 * that a client has started, that is older than this one and has nothing to do: it ends now, and
 * the client starts its own.
 */
export interface InitializeParams {
  client: ClientInfo;
  /** Default: "1.0" */
  protocol?: string;
  environment?: ClientEnvironment | null;
}

/** A live session: what runs in it and what it waits for. */
export interface SessionStatus {
  id: string;
  agent: string;
  parent?: string | null;
  turnId?: string | null;
  turnStartedAt?: number | null;
  steps?: number;
  waits?: Wait[];
  commands?: CommandInfo[];
  queued?: number;
  unsaved?: string | null;
}

/** An open conversation, with its live sessions. */
export interface ConversationActivity {
  id: string;
  title: string;
  status: ConversationStatus;
  subscribers: number;
  sessions?: SessionStatus[];
}

export interface RuntimeStatusResult {
  server: ServerInfo;
  address: string;
  clients: number;
  /** Resident memory of the server. */
  memoryBytes: number;
  /** Of very many, those in which something runs, then those that were used last. */
  conversations?: ConversationActivity[];
  openConversations?: number;
  configGeneration?: number;
  notices?: string[];
}

/** Return what is alive in the server now: conversations, turns, commands, waits. */
export type RuntimeStatusParams = Record<string, never>;

/** What is wrong in the configuration, and where. */
export interface ConfigProblem {
  file: string;
  line?: number | null;
  key?: string;
  text: string;
}

/** An approval or question that waits for a person, with where it is. */
export interface PendingDecision {
  conversationId: string;
  sessionId: string;
  conversationTitle?: string;
  /** For an approval: what its call would do, in one line. */
  title?: string;
  decision: Approval | Question;
}

/** Conversations, newest first (the list has the rest), and all that waits for a person. */
export interface RuntimeSnapshot {
  epoch: string;
  seq: number;
  conversations: ConversationRow[];
  pending: PendingDecision[];
  configGeneration?: number;
  configProblems?: ConfigProblem[];
}

/** A conversation is new or its row is another now. */
export interface RowChanged {
  type: "row/changed";
  row: ConversationRow;
}

/** A conversation was deleted. */
export interface RowRemoved {
  type: "row/removed";
  conversationId: string;
}

/** An approval or a question waits for a person. */
export interface DecisionPending {
  type: "decision/pending";
  pending: PendingDecision;
}

/** It waits no more: answered, withdrawn or expired. */
export interface DecisionSettled {
  type: "decision/settled";
  conversationId: string;
  decisionId: string;
}

/** A configuration was loaded, or could not be: then the one before stays in force. */
export interface ConfigChanged {
  type: "config/changed";
  generation: number;
  problems?: ConfigProblem[];
}

export type RuntimeEvent =
  | RowChanged
  | RowRemoved
  | DecisionPending
  | DecisionSettled
  | ConfigChanged;

/** One numbered event of the runtime; numbers begin at 1 with each epoch. */
export interface RuntimeFrame {
  epoch: string;
  seq: number;
  event: RuntimeEvent;
}

/** Watch all conversations at once: the answer is a snapshot, events follow. */
export type RuntimeSubscribeParams = Record<string, never>;

/** Stop watching all conversations. */
export type RuntimeUnsubscribeParams = Record<string, never>;

/** Return what conversations used and cost, a page of them; sums are the client's to make. */
export interface RuntimeUsageParams {
  /** Only turns that ended at this time or later, or run. */
  since?: number | null;
  cursor?: string | null;
  /**
   * 1 to 1,000; a page may have fewer, and then tells that there are more.
   * Default: 50
   */
  limit?: number;
}

export interface ReloadResult {
  /** Counts the configurations that were loaded; the same as before when nothing was. */
  generation: number;
  /** Why the configuration before stays in force; empty: the new one is. */
  problems?: ConfigProblem[];
}

/** Load the configuration again. One with problems changes nothing. */
export type ReloadParams = Record<string, never>;

/** End the server: running turns are interrupted, everything is written down. */
export interface ShutdownParams {
  /** Refused as `busy` while a turn or a command runs. */
  onlyIfIdle?: boolean;
  reason?: string;
}

/** An event for those who watch all conversations. */
export interface RuntimeEventNotification {
  frame: RuntimeFrame;
}

/** The client fell behind: this snapshot replaces all it knew. */
export interface RuntimeResyncNotification {
  snapshot: RuntimeSnapshot;
}

/** One line for the person. */
export interface NoticeNotification {
  level: "info" | "warning" | "error";
  text: string;
}

/** Make a conversation. Nothing of it is on disk before its first message. */
export interface ConversationCreateParams {
  /** Absolute, on the executor. */
  directory: string;
  /** Default: "local" */
  executor?: string;
  /** Default: "default" */
  agent?: string;
  settings?: Settings;
  title?: string;
  ephemeral?: boolean;
  /** The same again finds the conversation that was made first. */
  clientId?: string | null;
}

/** Return a page of conversations. */
export interface ConversationListParams {
  query?: ListQuery;
  cursor?: string | null;
  /**
   * 1 to 1,000; a page may have fewer, and then tells that there are more.
   * Default: 50
   */
  limit?: number;
}

/** Return titles and messages that hold every word, best first. */
export interface ConversationSearchParams {
  text: string;
  cursor?: string | null;
  /**
   * 1 to 1,000; a page may have fewer, and then tells that there are more.
   * Default: 20
   */
  limit?: number;
}

/**
 * Return a conversation as lists show it.
 *
 * One that nobody has said anything in is in no list; it is found when it is open.
 */
export interface ConversationGetParams {
  conversationId: string;
}

/** Return what the turns of a conversation used and cost, by session and turn. */
export interface ConversationUsageParams {
  conversationId: string;
  /** Only turns that ended at this time or later, or run. */
  since?: number | null;
}

/** Up to where a client knows a conversation. */
export interface Position {
  epoch: string;
  seq: number;
}

export interface ConversationSubscribeResult {
  /** null: the events after the position that was given follow, without a gap. */
  snapshot?: Snapshot | null;
}

/** Watch a conversation: a snapshot, then every event. Once more: begins anew. */
export interface ConversationSubscribeParams {
  conversationId: string;
  /** Continue here when the server still can. */
  after?: Position | null;
}

/** Stop watching a conversation. */
export interface ConversationUnsubscribeParams {
  conversationId: string;
}

/** Give a conversation a title. */
export interface ConversationRenameParams {
  conversationId: string;
  title: string;
}

/** Change the work directory or the tags; what is left out stays. */
export interface ConversationUpdateParams {
  conversationId: string;
  directory?: string | null;
  tags?: string[] | null;
}

/** Take a conversation out of the usual list, or put it back. */
export interface ConversationArchiveParams {
  conversationId: string;
  /** Default: true */
  archived?: boolean;
}

/** Copy a conversation up to the end of a step; the copy goes its own way. */
export interface ConversationForkParams {
  conversationId: string;
  /** The last turn to take along; left out: all that has ended. */
  turnId?: string | null;
}

/** End what runs in a conversation and delete it for good; done whole, whoever disconnects. */
export interface ConversationDeleteParams {
  conversationId: string;
}

export interface ConversationExportResult {
  sizeBytes: number;
}

/** Write a conversation as an archive to a new file of the server's machine. */
export interface ConversationExportParams {
  conversationId: string;
  /** Absolute; refused when something is there. */
  path: string;
}

/** Add a conversation from an archive on the server's machine. */
export interface ConversationImportParams {
  path: string;
}

/** What changed in a conversation that the client watches. */
export interface EventNotification {
  conversationId: string;
  frame: Frame;
}

/** The client fell behind or the conversation was opened anew: this replaces all it knew. */
export interface ResyncNotification {
  conversationId: string;
  snapshot: Snapshot;
}

/** The client does not watch this conversation any more. */
export interface ClosedNotification {
  conversationId: string;
  reason: string;
}

/** A session of a conversation; left out: its root session. */
export interface SessionParams {
  conversationId: string;
  sessionId?: string | null;
}

/**
 * Give the agent a message; it is on disk when this is answered.
 *
 * The same `clientId` again finds the input of the first send.
 */
export interface SessionSendParams extends SessionParams {
  clientId: string;
  content: Content[];
  /** Default: "queue" */
  delivery?: Delivery;
  /** For the turn of this message only. */
  settings?: Settings | null;
  /**
   * The JSON Schema, of type object or any other, that the last answer of the turn has to match:
   * its text is then one JSON document and nothing else. Kept with the message until its turn runs.
   * A model that answers otherwise is told what is wrong, and the turn fails when that does not
   * help.
   */
  outputSchema?: Record<string, unknown> | null;
  /** Replaces what the client said when it connected. */
  environment?: ClientEnvironment | null;
}

export interface SessionInterruptResult {
  /** False: no turn runs, or not the one that was named. */
  interrupted: boolean;
}

/**
 * Interrupt the running turn, or only the one named; clean-up follows the answer.
 *
 * Messages of the same client that were sent before it are stopped, too: they are held, or the
 * turn that has taken them is interrupted.
 */
export interface SessionInterruptParams extends SessionParams {
  turnId?: string | null;
}

/** Release the queue that an interrupt, a failure or a restart has held. */
export interface SessionResumeParams extends SessionParams {
}

/**
 * Return a page of the transcript: the newest items, or those before or after a place.
 *
 * It has fewer than `limit` when they are large, and says so by `earlier` and `later`.
 */
export interface SessionItemsParams extends SessionParams {
  before?: number | null;
  after?: number | null;
  /**
   * 1 to 1,000; a page may have fewer, and then tells that there are more.
   * Default: 50
   */
  limit?: number;
}

/**
 * Return how a turn stands or ended, however long ago, and what the agent said last in it.
 *
 * `not_found` for a turn that is not of the session.
 */
export interface SessionTurnParams extends SessionParams {
  turnId: string;
}

/** Change a message that waits; `not_pending` when it was taken. */
export interface SessionEditInputParams extends SessionParams {
  inputId: string;
  content: Content[];
}

/** Take back a message that waits; `not_pending` when it was taken. */
export interface SessionWithdrawInputParams extends SessionParams {
  inputId: string;
}

/** Put a message that waits before another one, or at the end. */
export interface SessionMoveInputParams extends SessionParams {
  inputId: string;
  before?: string | null;
}

/**
 * Begin a turn that replaces what was said so far by a summary of the session's model.
 *
 * The turn ends like any other: completed with a `context_summary`, or failed, and then nothing
 * has changed. `busy` while a turn runs, `bad_request` when there is nothing to compact.
 */
export interface SessionCompactParams extends SessionParams {
}

export interface SettingChoice {
  value: string;
  name?: string;
  description?: string;
}

/** One thing that can be set, with what it is set to and what it can be. */
export interface SettingOption {
  /** `model`, `mode` or `effort`. */
  id: string;
  name: string;
  value: string | null;
  choices?: SettingChoice[];
  /** Other values than the choices are taken, too. */
  open?: boolean;
}

export interface SessionConfigureResult {
  /** Those in force. */
  settings: Settings;
  options: SettingOption[];
}

/** Change the settings that are given, if any; the answer lists all there are. */
export interface SessionConfigureParams extends SessionParams {
  settings?: Settings;
}

/** Decide a pending approval of any session; `not_pending` for a late answer. */
export interface ApprovalAnswerParams {
  conversationId: string;
  approvalId: string;
  /** The id of one of its options. */
  option: string;
  /** Who decides; left out: the name of the client. */
  by?: string;
  reason?: string;
  /** End the turn, too. */
  interrupt?: boolean;
}

/** Answer a pending question; `not_pending` for a late answer. */
export interface QuestionAnswerParams {
  conversationId: string;
  questionId: string;
  /** null: the person does not want to answer. */
  answer: string | null;
  /** Who answers; left out: the name of the client. */
  by?: string;
}

export interface CommandListResult {
  commands: CommandInfo[];
}

/** Return the commands that run in the background of a conversation, oldest first. */
export interface CommandListParams {
  conversationId: string;
}

export interface CommandParams {
  conversationId: string;
  commandId: string;
}

export interface CommandOutputResult {
  text: string;
  /** The byte of output that the text begins with; later than asked for when older is gone. */
  offset: number;
  nextOffset: number;
  totalBytes: number;
  running: boolean;
  exitCode?: number | null;
  signal?: number | null;
}

/** Return output of a command that runs or ended lately, from a byte on. */
export interface CommandOutputParams extends CommandParams {
  offset?: number;
  /** Default: 65536 */
  limitBytes?: number;
}

/** Write to the standard input of a command. */
export interface CommandWriteParams extends CommandParams {
  text: string;
}

/** Change the size of a command's terminal; `bad_request` for one without a terminal. */
export interface CommandResizeParams extends CommandParams {
  columns: number;
  rows: number;
}

/** Signal a command, or end its whole tree (`KILL`: at once, `TERM`: after a grace). */
export interface CommandKillParams extends CommandParams {
  /** Default: "TERM" */
  signal?: "INT" | "TERM" | "KILL" | "HUP";
}

/**
 * Say what the client runs in, in place of what this connection told before.
 *
 * Conversations have it from the next message on. `bad_request` for a client that is on another
 * machine than the server.
 */
export interface ClientEnvironmentParams {
  environment: ClientEnvironment;
}

/** A tool that the client runs; `parameters` is a JSON Schema of type object. */
export interface OfferedTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  /** It changes nothing, so the mode `ask` lets it run. */
  readOnly?: boolean;
}

export interface OfferedFiles {
  /** Default: true */
  read?: boolean;
  /** Default: true */
  write?: boolean;
}

export interface ClientOfferResult {
  offerId: string;
}

/**
 * Offer services for a conversation; an earlier offer of this connection for it is replaced.
 *
 * `bad_request` for files or a terminal from another machine than the server's.
 */
export interface ClientOfferParams {
  conversationId: string;
  /** Text files of the local executor are read and written through the client. */
  files?: OfferedFiles | null;
  /** Commands of the local executor run in the client's terminal. */
  terminal?: boolean;
  tools?: OfferedTool[];
  /** Questions of the agent are put to the person by the client. */
  elicitation?: boolean;
}

/** Take an offer back. */
export interface ClientWithdrawParams {
  offerId: string;
}

export interface FileReadResult {
  text: string;
}

/** To the client: return a text file as the person sees it, with changes not saved yet. */
export interface FileReadParams {
  conversationId: string;
  path: string;
}

/** To the client: replace a text file, or make it. */
export interface FileWriteParams {
  conversationId: string;
  path: string;
  text: string;
}

export interface ToolRunResult {
  content: Content[];
  isError?: boolean;
}

/** To the client: run a tool that it offered. */
export interface ToolRunParams {
  conversationId: string;
  callId: string;
  name: string;
  arguments: Record<string, unknown>;
}

export interface ElicitResult {
  /** null: the person does not want to answer. */
  answer: string | null;
}

/** To the client: put a question to the person. */
export interface ElicitParams {
  conversationId: string;
  questionId: string;
  text: string;
  choices?: string[];
}

export interface TerminalExit {
  code?: number | null;
  signal?: number | null;
}

export interface TerminalStartResult {
  terminalId: string;
}

/** To the client: run a command in a terminal of its own. */
export interface TerminalStartParams {
  conversationId: string;
  command: string;
  arguments?: string[];
  directory: string;
  environment?: Record<string, string>;
}

export interface TerminalOutputResult {
  /** Output since the last time; waits until there is some, or the command has ended. */
  text: string;
  /** What the client did not keep before it. */
  droppedBytes?: number;
  exit?: TerminalExit | null;
}

/** To the client: wait for output, and return it. */
export interface TerminalOutputParams {
  terminalId: string;
}

/** To the client: end the command and everything it started, and forget the terminal. */
export interface TerminalEndParams {
  terminalId: string;
}

/** The server does not want the answer of a request any more. */
export interface ClientCancelNotification {
  requestId: number;
}

export interface ModelInfo {
  /** What chooses it: `provider/model`. */
  name: string;
  provider: string;
  /** Where it is known from: the configuration, a variable, a server on this machine. */
  source?: string;
  /** The context window; null: not known, here as for what follows. */
  contextTokens?: number | null;
  /** The most that one answer can have. */
  outputTokens?: number | null;
  features?: Feature[] | null;
  prices?: ModelPrices | null;
  /** Who says it, by the name of the field: configuration goes before server before catalogue. */
  facts?: Record<string, FactSource>;
  /** Where the catalogue has it from, when any of it is from there. */
  catalogue?: CatalogueSource | null;
  /** Default: true */
  usable?: boolean;
  /** Why it cannot be used. */
  reason?: string;
}

export interface ModelListResult {
  models: ModelInfo[];
  /** The model that runs when none is named. */
  default?: string | null;
  /** Why that one; or why there is none, with the way out. */
  reason?: string;
}

/**
 * Return the models that are known, and the one that runs when none is named.
 *
 * What can be used, and what runs, is told for the keys that this client has.
 */
export type ModelListParams = Record<string, never>;

/**
 * Return a model by name, also one that is in no list.
 *
 * Its server is asked what it says of the model, for some seconds at most.
 */
export interface ModelGetParams {
  name: string;
}

export interface ModelResolveResult {
  /** What chooses it: `provider/model`. */
  model: string;
  provider: string;
  /** What has named it; `default`: nothing has. */
  source: "name" | "conversation" | "agent" | "default";
  /** One line that says why this one, and names it. */
  reason: string;
}

/**
 * Return the model that would run for this client, with the keys that it has.
 *
 * That is the one of this name; else of the conversation, in whose settings and agent it is looked
 * for; else of the agent; else the default. `bad_request` when there is none: the text names
 * what was looked for and the ways out.
 */
export interface ModelResolveParams {
  name?: string | null;
  agent?: string | null;
  conversationId?: string | null;
}

export interface AgentInfo {
  name: string;
  description?: string;
  settings?: Settings;
  tools?: string[];
  instructions?: string;
}

export interface AgentListResult {
  agents: AgentInfo[];
}

/** Return the agents, without their instructions. */
export type AgentListParams = Record<string, never>;

/** Return an agent by name, with its instructions. */
export interface AgentGetParams {
  name: string;
}

export interface ExecutorInfo {
  name: string;
  kind: string;
}

export interface ExecutorListResult {
  executors: ExecutorInfo[];
}

/** Return the executors that conversations can work on. */
export type ExecutorListParams = Record<string, never>;

/** Return an executor by name. */
export interface ExecutorGetParams {
  name: string;
}

export interface ConfigFileInfo {
  /** As in `providers.yaml`. */
  name: string;
  path: string;
  exists: boolean;
}

export interface ConfigListResult {
  directory: string;
  files: ConfigFileInfo[];
  generation: number;
  problems?: ConfigProblem[];
}

/** Return the files of the configuration, and what is wrong in them now. */
export type ConfigListParams = Record<string, never>;

export interface ConfigGetResult {
  /** Secrets are replaced by a mark. */
  value: unknown;
}

/** Return a file of the configuration, or one value in it, without secrets. */
export interface ConfigGetParams {
  file: string;
  key?: (string | number)[];
}

/** Change one value in a file and load the result; with problems the file is put back. */
export interface ConfigSetParams {
  file: string;
  key: (string | number)[];
  /** null takes the key out. */
  value: unknown;
}

export interface ErrorData {
  /** The kind of refusal: one of the table of errors, or one of a newer server. */
  code: string;
  /** The parameter that is wrong, as in `content[0].text`. */
  field?: string;
  /** Finds the traceback in the log of the server. */
  trace?: string;
}

/** The `error` of an answer. */
export interface ErrorBody {
  code: number;
  message: string;
  data: ErrorData;
}

/** What a client asks of the server. */
export interface Methods {
  /**
   * Say who the client is and which protocol it speaks; the first request of a connection.
   *
   * Refused as `incompatible` when the major versions differ. Refused as `outdated` by a server
   * that a client has started, that is older than this one and has nothing to do: it ends now, and
   * the client starts its own.
   */
  "runtime/initialize": { params: InitializeParams; result: InitializeResult };
  /** Return what is alive in the server now: conversations, turns, commands, waits. */
  "runtime/status": { params: RuntimeStatusParams; result: RuntimeStatusResult };
  /** Watch all conversations at once: the answer is a snapshot, events follow. */
  "runtime/subscribe": { params: RuntimeSubscribeParams; result: RuntimeSnapshot };
  /** Stop watching all conversations. */
  "runtime/unsubscribe": { params: RuntimeUnsubscribeParams; result: Done };
  /** Return what conversations used and cost, a page of them; sums are the client's to make. */
  "runtime/usage": { params: RuntimeUsageParams; result: UsagePage };
  /** Load the configuration again. One with problems changes nothing. */
  "runtime/reload": { params: ReloadParams; result: ReloadResult };
  /** End the server: running turns are interrupted, everything is written down. */
  "runtime/shutdown": { params: ShutdownParams; result: Done };
  /** Make a conversation. Nothing of it is on disk before its first message. */
  "conversation/create": { params: ConversationCreateParams; result: ConversationInfo };
  /** Return a page of conversations. */
  "conversation/list": { params: ConversationListParams; result: ConversationPage };
  /** Return titles and messages that hold every word, best first. */
  "conversation/search": { params: ConversationSearchParams; result: SearchPage };
  /**
   * Return a conversation as lists show it.
   *
   * One that nobody has said anything in is in no list; it is found when it is open.
   */
  "conversation/get": { params: ConversationGetParams; result: ConversationRow };
  /** Return what the turns of a conversation used and cost, by session and turn. */
  "conversation/usage": { params: ConversationUsageParams; result: ConversationSpent };
  /** Watch a conversation: a snapshot, then every event. Once more: begins anew. */
  "conversation/subscribe": { params: ConversationSubscribeParams; result: ConversationSubscribeResult };
  /** Stop watching a conversation. */
  "conversation/unsubscribe": { params: ConversationUnsubscribeParams; result: Done };
  /** Give a conversation a title. */
  "conversation/rename": { params: ConversationRenameParams; result: ConversationInfo };
  /** Change the work directory or the tags; what is left out stays. */
  "conversation/update": { params: ConversationUpdateParams; result: ConversationInfo };
  /** Take a conversation out of the usual list, or put it back. */
  "conversation/archive": { params: ConversationArchiveParams; result: ConversationInfo };
  /** Copy a conversation up to the end of a step; the copy goes its own way. */
  "conversation/fork": { params: ConversationForkParams; result: ConversationInfo };
  /** End what runs in a conversation and delete it for good; done whole, whoever disconnects. */
  "conversation/delete": { params: ConversationDeleteParams; result: Done };
  /** Write a conversation as an archive to a new file of the server's machine. */
  "conversation/export": { params: ConversationExportParams; result: ConversationExportResult };
  /** Add a conversation from an archive on the server's machine. */
  "conversation/import": { params: ConversationImportParams; result: ConversationInfo };
  /**
   * Give the agent a message; it is on disk when this is answered.
   *
   * The same `clientId` again finds the input of the first send.
   */
  "session/send": { params: SessionSendParams; result: InputInfo };
  /**
   * Interrupt the running turn, or only the one named; clean-up follows the answer.
   *
   * Messages of the same client that were sent before it are stopped, too: they are held, or the
   * turn that has taken them is interrupted.
   */
  "session/interrupt": { params: SessionInterruptParams; result: SessionInterruptResult };
  /** Release the queue that an interrupt, a failure or a restart has held. */
  "session/resume": { params: SessionResumeParams; result: Done };
  /**
   * Begin a turn that replaces what was said so far by a summary of the session's model.
   *
   * The turn ends like any other: completed with a `context_summary`, or failed, and then nothing
   * has changed. `busy` while a turn runs, `bad_request` when there is nothing to compact.
   */
  "session/compact": { params: SessionCompactParams; result: TurnInfo };
  /**
   * Return a page of the transcript: the newest items, or those before or after a place.
   *
   * It has fewer than `limit` when they are large, and says so by `earlier` and `later`.
   */
  "session/items": { params: SessionItemsParams; result: ItemPage };
  /**
   * Return how a turn stands or ended, however long ago, and what the agent said last in it.
   *
   * `not_found` for a turn that is not of the session.
   */
  "session/turn": { params: SessionTurnParams; result: TurnResult };
  /** Change a message that waits; `not_pending` when it was taken. */
  "session/editInput": { params: SessionEditInputParams; result: InputInfo };
  /** Take back a message that waits; `not_pending` when it was taken. */
  "session/withdrawInput": { params: SessionWithdrawInputParams; result: InputInfo };
  /** Put a message that waits before another one, or at the end. */
  "session/moveInput": { params: SessionMoveInputParams; result: Done };
  /** Change the settings that are given, if any; the answer lists all there are. */
  "session/configure": { params: SessionConfigureParams; result: SessionConfigureResult };
  /** Decide a pending approval of any session; `not_pending` for a late answer. */
  "approval/answer": { params: ApprovalAnswerParams; result: Done };
  /** Answer a pending question; `not_pending` for a late answer. */
  "question/answer": { params: QuestionAnswerParams; result: Done };
  /** Return the commands that run in the background of a conversation, oldest first. */
  "command/list": { params: CommandListParams; result: CommandListResult };
  /** Return output of a command that runs or ended lately, from a byte on. */
  "command/output": { params: CommandOutputParams; result: CommandOutputResult };
  /** Write to the standard input of a command. */
  "command/write": { params: CommandWriteParams; result: Done };
  /** Change the size of a command's terminal; `bad_request` for one without a terminal. */
  "command/resize": { params: CommandResizeParams; result: Done };
  /** Signal a command, or end its whole tree (`KILL`: at once, `TERM`: after a grace). */
  "command/kill": { params: CommandKillParams; result: Done };
  /**
   * Say what the client runs in, in place of what this connection told before.
   *
   * Conversations have it from the next message on. `bad_request` for a client that is on another
   * machine than the server.
   */
  "client/environment": { params: ClientEnvironmentParams; result: Done };
  /**
   * Offer services for a conversation; an earlier offer of this connection for it is replaced.
   *
   * `bad_request` for files or a terminal from another machine than the server's.
   */
  "client/offer": { params: ClientOfferParams; result: ClientOfferResult };
  /** Take an offer back. */
  "client/withdraw": { params: ClientWithdrawParams; result: Done };
  /**
   * Return the models that are known, and the one that runs when none is named.
   *
   * What can be used, and what runs, is told for the keys that this client has.
   */
  "model/list": { params: ModelListParams; result: ModelListResult };
  /**
   * Return a model by name, also one that is in no list.
   *
   * Its server is asked what it says of the model, for some seconds at most.
   */
  "model/get": { params: ModelGetParams; result: ModelInfo };
  /**
   * Return the model that would run for this client, with the keys that it has.
   *
   * That is the one of this name; else of the conversation, in whose settings and agent it is looked
   * for; else of the agent; else the default. `bad_request` when there is none: the text names
   * what was looked for and the ways out.
   */
  "model/resolve": { params: ModelResolveParams; result: ModelResolveResult };
  /** Return the agents, without their instructions. */
  "agent/list": { params: AgentListParams; result: AgentListResult };
  /** Return an agent by name, with its instructions. */
  "agent/get": { params: AgentGetParams; result: AgentInfo };
  /** Return the executors that conversations can work on. */
  "executor/list": { params: ExecutorListParams; result: ExecutorListResult };
  /** Return an executor by name. */
  "executor/get": { params: ExecutorGetParams; result: ExecutorInfo };
  /** Return the files of the configuration, and what is wrong in them now. */
  "config/list": { params: ConfigListParams; result: ConfigListResult };
  /** Return a file of the configuration, or one value in it, without secrets. */
  "config/get": { params: ConfigGetParams; result: ConfigGetResult };
  /** Change one value in a file and load the result; with problems the file is put back. */
  "config/set": { params: ConfigSetParams; result: ReloadResult };
}

/** What the server asks of a client. */
export interface ClientMethods {
  /** To the client: return a text file as the person sees it, with changes not saved yet. */
  "client/readFile": { params: FileReadParams; result: FileReadResult };
  /** To the client: replace a text file, or make it. */
  "client/writeFile": { params: FileWriteParams; result: Done };
  /** To the client: run a tool that it offered. */
  "client/runTool": { params: ToolRunParams; result: ToolRunResult };
  /** To the client: put a question to the person. */
  "client/elicit": { params: ElicitParams; result: ElicitResult };
  /** To the client: run a command in a terminal of its own. */
  "client/startTerminal": { params: TerminalStartParams; result: TerminalStartResult };
  /** To the client: wait for output, and return it. */
  "client/terminalOutput": { params: TerminalOutputParams; result: TerminalOutputResult };
  /** To the client: end the command and everything it started, and forget the terminal. */
  "client/endTerminal": { params: TerminalEndParams; result: TerminalExit };
}

/** What the server tells a client. */
export interface Notifications {
  /** What changed in a conversation that the client watches. */
  "conversation/event": EventNotification;
  /** The client fell behind or the conversation was opened anew: this replaces all it knew. */
  "conversation/resync": ResyncNotification;
  /** The client does not watch this conversation any more. */
  "conversation/closed": ClosedNotification;
  /** An event for those who watch all conversations. */
  "runtime/event": RuntimeEventNotification;
  /** The client fell behind: this snapshot replaces all it knew. */
  "runtime/resync": RuntimeResyncNotification;
  /** One line for the person. */
  "runtime/notice": NoticeNotification;
  /** The server does not want the answer of a request any more. */
  "client/cancel": ClientCancelNotification;
}

/** The kinds of errors; a newer server may have more. */
export type ErrorCode =
  | "refused"
  | "not_found"
  | "not_pending"
  | "busy"
  | "overloaded"
  | "not_durable"
  | "unreadable"
  | "stopping"
  | "timed_out"
  | "incompatible"
  | "outdated"
  | "model_unreachable"
  | "bad_request"
  | "unknown_method"
  | "invalid_message"
  | "failed";

/** What a client asks of the server, by method. */
export type Method = keyof Methods;

/** What the server asks of a client that has offered it, by method. */
export type ClientMethod = keyof ClientMethods;

/** The id of a request, chosen by who asks; the answer has the same. */
export type RequestId = string | number | null;

export interface RequestMessage<M extends Method = Method> {
  jsonrpc: "2.0";
  id: RequestId;
  method: M;
  params: Methods[M]["params"];
}

export interface ClientRequestMessage<M extends ClientMethod = ClientMethod> {
  jsonrpc: "2.0";
  id: number;
  method: M;
  params: ClientMethods[M]["params"];
}

export interface ResultMessage<R = unknown> {
  jsonrpc: "2.0";
  id: RequestId;
  result: R;
}

export interface ErrorMessage {
  jsonrpc: "2.0";
  id: RequestId;
  error: ErrorBody;
}

/** Any notification; `method` tells which `params` it has. */
export type NotificationMessage = {
  [M in keyof Notifications]: { jsonrpc: "2.0"; method: M; params: Notifications[M] };
}[keyof Notifications];
