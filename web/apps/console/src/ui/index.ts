// The kit: everything that pages are made of. Markdown and SchemaForm are imported from their own files.
export { Button, EffectButton, LinkButton, type ButtonKind, type ButtonProps, type EffectLabel } from "./button";
export { effect, type EffectKey } from "./effect";
export { Icon, type IconName } from "./icon";
export { DegradedFlag, LiveBadge, Risk, STATES, StateIcon, StatePill, stateText } from "./state";
export { absoluteText, Ago, agoText, Clock, clockText, dayText, Duration, durationText, Elapsed, useNow } from "./time";
export { bytesText, Cost, costText, Tokens, tokensText } from "./amount";
export { Block, Code, Kbd, KeyValue, Sentence, visible } from "./text";
export { Checkbox, Field, Segmented, SelectField, TextField, type FieldIds, type Option } from "./field";
export { Modal } from "./modal";
export { Menu, type MenuItem } from "./menu";
export { Tooltip } from "./tooltip";
export { Copy, CopyButton, copyText } from "./copy";
export { Empty } from "./empty";
export { ErrorNote, FailureCard, failureNext, failureTitle, type FailureCardProps, type Problem } from "./failure";
export { PageHead, PageTitle } from "./page";
export { diagnostics } from "./diagnostics";
export { announce } from "../app/announce";
export { useShortcut } from "../app/shortcuts";
