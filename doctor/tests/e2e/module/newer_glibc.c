// SPDX-License-Identifier: Apache-2.0
// What a compile on glibc 2.38 or newer makes of strtol().
long __isoc23_strtol(const char*, char**, int);
long selective_scan_parse(const char* text);
long selective_scan_parse(const char* text) { return __isoc23_strtol(text, 0, 10); }
