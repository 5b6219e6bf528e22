/**
 * What a filesystem that can snapshot by itself is asked to do. A driver keeps whole states of a target, cheaply and at one
 * moment; it knows neither trees nor timelines. What such a state holds is read into the store when somebody first needs to
 * know (`src/engine/read-native.ts`), so that everything above works on it as on any other snapshot.
 */
import type { Raw } from '../model/raw-path.ts'

export type NativeName = 'apfs' | 'btrfs' | 'tmutil' | 'zfs'

/** A place to keep states in: what it means is the driver's (a directory, a dataset). */
export type Place = string

/** What may be used for states of one timeline. */
export interface Where {
  /** Directories that a driver may make, the best first; never in the target's own view. */
  directories: readonly string[]
  /** Nobody else's states have this in their place. */
  key: string
}

/** `of`: what states in that place are taken of, see NativeState. */
export type Probe = { works: true; place: Place; of?: string } | { works: false; reason: string; fix: string }

/** Where a state is kept. Stored with the snapshot. */
export interface NativeState {
  place: Place
  name: string
  /** What no copy of it, and nothing else that is given its name, has; undefined: not known. */
  mark?: string | undefined
  /**
   * What it was taken of, whatever that is called by now and wherever it is: tells a state from copies that has no mark yet.
   * undefined: not known, or told by the place.
   */
  of?: string | undefined
  /** It was there by then, in milliseconds: what was made later is another one. undefined: not known. */
  madeBy?: number | undefined
}

/** What may differ between two states; paths are relative to the target. */
export interface Differing {
  /** Directories whose entries may be others. They need not exist. */
  dirs: Set<Raw>
  /** Directories that may be other ones under the same name. */
  moved: Set<Raw>
}

export interface OpenState {
  /** A directory with the state, for reading. */
  path: Buffer
  /** Of the state, where that is told by now. */
  mark: string | undefined
  /**
   * Somebody has changed it since it was kept. 'perhaps': by its time it is another one, but a clock may have been set. May wait for the
   * disk: to be asked by who reads it whole, and before.
   */
  isChanged(): boolean | 'perhaps'
  close(): void
}

/**
 * What became of one that was to go. 'absent': it was gone already. `mayBe`: names of what may be it, or a copy of somebody, where nobody can tell. That
 * stays, and `byHand` is the command for who knows that nobody needs it.
 */
export type Removal = 'removed' | 'absent' | { mayBe: string; byHand: string }

/** What can be done with a state, whoever keeps it. */
export interface Keeper {
  name: NativeName | 'archive'
  /**
   * May be called again. Throws when it is still there, or that cannot be told now. `target`: of its timeline; what is there is
   * never named as what should go first.
   */
  remove(state: NativeState, target: Buffer): Removal
  /**
   * Where it is by now: its dataset may have another name. undefined: it is not there. Throws when that cannot be told.
   * `orCopy`: what somebody has received of it elsewhere holds the same, and is read where nothing else is left.
   */
  find(state: NativeState, orCopy?: boolean): NativeState | undefined
  /** For people: a path, or a name. */
  whereOf(state: NativeState): string
  /** Bytes that would be free without it; undefined: not known. */
  usageBytes(state: NativeState): number | undefined
}

/** How a filesystem goes back as a whole, and destroys what it kept later. */
export interface WholeRollback {
  /** Whether it is what is seen at `target` that would go back: by now it may be mounted elsewhere, and be somebody's work. */
  isAt(target: Buffer, state: NativeState): boolean
  /** The names of those, of whomever they are, the newest first. */
  later(state: NativeState): string[]
  /** Whether a name of those is that of a state, whatever its place was called when it was kept. */
  isNameOf(name: string, state: NativeState): boolean
  /** Whether it is one that was kept in the place of a state, whatever that is called by now. */
  isInPlaceOf(name: string, state: NativeState): boolean
  /** Whether it is one that Savepoint keeps, of whichever timeline and home. */
  isOfSavepoint(name: string): boolean
  /** Whether it is what a probe has made, of whomever: nobody misses that. */
  isProbe(name: string): boolean
  /** What others have made of those, and would be destroyed with them: that stops it. */
  madeOf(state: NativeState, later: readonly string[]): string[]
  /** Those that somebody has said must stay. */
  held(later: readonly string[]): string[]
  /** One of those. Called under the timeline's lock. */
  destroy(state: NativeState, name: string): void
  /** Throws, and does not go back, when there is one left of those. */
  go(state: NativeState): void
}

export interface NativeBackend extends Keeper {
  name: NativeName
  /** undefined: it cannot. */
  wholeRollback: WholeRollback | undefined
  /**
   * Makes a state and deletes it again, as this user, and says where it can be kept; leaves nothing behind. Never throws.
   */
  probe(target: Buffer, where: Where): Probe
  /** Where it would keep states of it now, as far as that is told without trying: they need not be there. Nothing is made. */
  placesFor(target: Buffer, where: Where): Place[]
  /** All states in a place, also those that no history knows; `byHand`: what removes it. Throws when that cannot be told. */
  statesIn(place: Place): { name: string; byHand: string }[]
  /** Removes what probes that were killed have left in a place, or beside it. Throws when something of that stays. */
  tidy(place: Place): void
  /** Keeps the present state, and gives its mark, unless who opens it is told that as well. Nothing is kept when it throws. */
  capture(target: Buffer, state: NativeState): string | undefined
  /** undefined: somebody has removed it. Throws when that cannot be told, because its place is not there. */
  open(state: NativeState): OpenState | undefined
  /** Where a state that was found can be looked at without more ado; undefined: that takes a clone, or a mount. */
  directoryOf(state: NativeState): string | undefined
  /**
   * Asked where the target is missing: whether what it was may be there nevertheless, and only not be mounted at it. Never
   * throws: where nobody tells, it may.
   */
  isAway(target: Buffer, state: NativeState): boolean
  /** undefined: not known, anything may differ. */
  differing(before: NativeState, after: NativeState): Differing | undefined
}
